// What somebody between two hosts can do to their connection: read it, change it, send it again, answer in its place.
#include "harness/channel/tls.h"

#include "harness/channel/channel.h"
#include "tests/support/channel_peer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;
using State = TlsConnection::State;
using Kind = ChannelServer::Event::Kind;

struct Pair {
  int near = -1, far = -1;
  Pair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    near = fds[0], far = fds[1];
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() { ::close(near), ::close(far); }
};

// A client of a ChannelServer, and somebody on the way who may change what passes.
class Tapped {
 public:
  using Change = std::function<void(std::string& bytes, std::size_t offset)>;

  Tapped(ChannelServer& server, const std::string& token, Change to_server = {}, Change to_client = {})
      : server_(server),
        to_server_(std::move(to_server)),
        to_client_(std::move(to_client)),
        link_(server),
        client_(TlsConnection::End::client, pair_.near, token) {
    ::fcntl(link_.fd(), F_SETFL, O_NONBLOCK);
  }

  // Says hello, and returns what the server made of it.
  std::vector<ChannelServer::Event> hello(std::string_view host) {
    const message::Hello hello{.rank = 0, .size = 1, .host = std::string(host), .version = channel_version()};
    const std::string line = encode(hello) + "\n";
    std::vector<ChannelServer::Event> events;
    bool said = false;
    // Each round passes on what the last one made; a handshake and a hello take five.
    for (int round = 0; round < 12; ++round) {
      if (!said && client_.shake_hands() == State::done) {
        std::string_view rest = line;
        said = client_.write(rest) == State::done;
      }
      pass(pair_.far, link_.fd(), sent_, to_server_);
      std::vector<pollfd> others;
      for (auto& event : server_.wait(1, others)) events.push_back(std::move(event));
      if (!pass(link_.fd(), pair_.far, answered_, to_client_) || !events.empty()) break;
    }
    said_ = said;
    return events;
  }

  const std::string& sent() const { return sent_; }
  const std::string& answered() const { return answered_; }
  bool said() const { return said_; }

 private:
  // False once `from` is at its end.
  static bool pass(int from, int to, std::string& all, const Change& change) {
    char block[16384];
    const ssize_t got = ::recv(from, block, sizeof block, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    std::string bytes(block, static_cast<std::size_t>(got));
    if (change) change(bytes, all.size());
    all += bytes;
    (void)!::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return true;
  }

  ChannelServer& server_;
  Change to_server_, to_client_;
  Pair pair_;
  RawPeer link_;
  TlsConnection client_;
  std::string sent_, answered_;
  bool said_ = false;
};

class Tls : public testing::Test {
 protected:
  void SetUp() override { server_.expect(1); }
  ChannelServer server_;
};

TEST_F(Tls, NobodyOnTheWayReadsTheTokenOrAMessage) {
  Tapped tapped(server_, server_.token());
  const auto events = tapped.hello("a-planted-marker");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<message::Hello>(events[0].message).host, "a-planted-marker");
  ASSERT_TRUE(server_.send(0, message::Share{"id", "another-planted-marker"}));
  for (const std::string* wire : {&tapped.sent(), &tapped.answered()}) {
    EXPECT_GT(wire->size(), 100u);
    EXPECT_THAT(*wire, Not(HasSubstr("planted")));
    EXPECT_THAT(*wire, Not(HasSubstr("hello")));
    EXPECT_THAT(*wire, Not(HasSubstr(server_.token())));
  }
}

TEST_F(Tls, AChangedByteOfTheClientIsNoMessage) {
  std::size_t length = 0;
  {
    Tapped whole(server_, server_.token());
    ASSERT_EQ(whole.hello("h").size(), 1u);
    length = whole.sent().size();
  }
  for (std::size_t i = 0; i < 1000; ++i) {
    server_.expect(1);
    const std::size_t at = i % length;
    Tapped changed(server_, server_.token(), [&](std::string& bytes, std::size_t offset) {
      if (at >= offset && at < offset + bytes.size())
        bytes[at - offset] = static_cast<char>(bytes[at - offset] ^ (1 << (i % 8)));
    });
    // The version in the first record's header means nothing (RFC 8446, 5.1): the hello then comes as it was said.
    const auto events = changed.hello("h");
    const bool ignored = at == 1 || at == 2;
    EXPECT_TRUE(events.empty() || (ignored && std::get<message::Hello>(events[0].message).host == "h"))
        << "byte " << at << " of " << length << ", bit " << i % 8;
  }
}

TEST_F(Tls, AChangedByteOfTheServerIsNoOrder) {
  std::size_t length = 0;
  {
    Tapped whole(server_, server_.token());
    ASSERT_EQ(whole.hello("h").size(), 1u);
    length = whole.answered().size();
  }
  ASSERT_GT(length, 100u);
  for (std::size_t at = 0; at < length; ++at) {
    server_.expect(1);
    Tapped changed(server_, server_.token(), {}, [&](std::string& bytes, std::size_t offset) {
      if (at >= offset && at < offset + bytes.size()) bytes[at - offset] = static_cast<char>(bytes[at - offset] ^ 4);
    });
    changed.hello("h");
    if (at == 1 || at == 2) continue;  // as above
    EXPECT_FALSE(changed.said()) << "byte " << at << " of " << length;
  }
}

TEST_F(Tls, WhatWasRecordedCannotBeSentAgain) {
  std::string recorded;
  {
    Tapped first(server_, server_.token());
    ASSERT_EQ(first.hello("h").size(), 1u);
    recorded = first.sent();
  }
  server_.disconnect(0);
  ChannelServer another({.token = server_.token()});
  another.expect(1);
  for (ChannelServer* server : {&server_, &another}) {
    const RawPeer replay(*server);
    replay.send_text(recorded);
    std::vector<pollfd> others;
    std::vector<std::string> log;
    for (int round = 0; round < 1000 && log.empty(); ++round) {
      for (const auto& event : server->wait(5, others)) EXPECT_NE(event.kind, Kind::hello);
      log = server->drain_log();
    }
    EXPECT_THAT(log, testing::Contains(HasSubstr("no TLS with this run's token")));
  }
}

// A server that shows a certificate, which needs no token.
std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> server_with_certificate() {
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  EXPECT_NE(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  return context;
}

TEST(TlsClient, RefusesWhoAnswersWithoutTheToken) {
  const auto context = server_with_certificate();
  const Pair pair;
  const std::unique_ptr<SSL, decltype(&SSL_free)> impostor(SSL_new(context.get()), SSL_free);
  SSL_set_fd(impostor.get(), pair.far);
  TlsConnection client(TlsConnection::End::client, pair.near, "the token");
  State state = State::wants_read;
  for (int round = 0; round < 10 && state == State::wants_read; ++round) {
    state = client.shake_hands();
    (void)SSL_accept(impostor.get());
  }
  EXPECT_EQ(state, State::failed);
  EXPECT_THAT(client.why(), HasSubstr("certificate"));
}

}  // namespace
}  // namespace assay
