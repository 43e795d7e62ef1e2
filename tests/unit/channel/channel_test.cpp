// The channel among strangers: whatever they send costs a log line, and real workers continue.
#include "harness/channel/channel.h"
#include "harness/core/rng.h"
#include "tests/support/channel_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>

namespace assay {
namespace {

using testing::HasSubstr;
using Kind = ChannelServer::Event::Kind;

class Channel : public testing::Test {
 protected:
  void SetUp() override { server_.expect(2); }

  std::string hello(int rank, const std::string& version = channel_version()) const {
    return encode(message::Hello{.rank = rank, .size = 2, .host = "here", .pid = 1, .version = version}) + "\n";
  }
  // A client that knows the token; gather() lets it proceed.
  TlsPeer& client() { return *clients_.emplace_back(std::make_unique<TlsPeer>(server_, server_.token())); }
  // Gathers events and log lines until `enough`.
  void gather(const std::function<bool()>& enough) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::vector<pollfd> others;
    while (!enough() && std::chrono::steady_clock::now() < until) {
      for (const auto& client : clients_) client->proceed();
      for (auto& event : server_.wait(20, others)) events_.push_back(std::move(event));
      for (auto& line : server_.drain_log()) log_.push_back(std::move(line));
    }
    EXPECT_TRUE(enough());
  }
  void expect_worker_continues(TlsPeer& worker) {
    const std::size_t before = events_.size();
    worker.send_text("{\"type\":\"heartbeat\"}\n");
    gather([&] { return events_.size() > before; });
    EXPECT_EQ(events_.back().kind, Kind::message);
  }

  ChannelServer server_;
  std::vector<std::unique_ptr<TlsPeer>> clients_;
  std::vector<ChannelServer::Event> events_;
  std::vector<std::string> log_;
};

TEST_F(Channel, ListensOnLoopbackOnlyAndTokensAreFresh) {
  EXPECT_EQ(server_.address().rfind("127.0.0.1:", 0), 0u);
  const std::string first = server_.token();
  EXPECT_EQ(first.size(), 32u);
  server_.expect(2);
  EXPECT_NE(server_.token(), first);
}

TEST_F(Channel, AWorkerIsHeard) {
  TlsPeer& worker = client();
  worker.send_text(hello(1));
  worker.send_text("{\"type\":\"span\",\"name\":\"set");
  gather([&] { return events_.size() == 1; });
  EXPECT_EQ(events_[0].kind, Kind::hello);
  EXPECT_EQ(events_[0].rank, 1);
  worker.send_text("up\"}\n");
  gather([&] { return events_.size() == 2; });
  EXPECT_EQ(std::get<message::Phase>(events_[1].message).name, "setup");
  EXPECT_TRUE(server_.send(1, message::End{}));
  EXPECT_FALSE(server_.send(0, message::End{}));
  gather([&] { return !worker.received().empty(); });
  EXPECT_THAT(worker.received(), HasSubstr("end"));
}

TEST_F(Channel, StrangersCostALogLine) {
  TlsPeer& worker = client();
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const std::vector<std::pair<std::string, std::string>> strangers = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "neither TLS"},
      {"{}\n", "neither TLS"},
      {"{\"type\":\"hello\",\"token\":\"" + std::string(32, '0') + "\"}\n", "neither TLS"},
      {std::string(1 << 20, 'x'), "neither TLS"},
      {std::string("\0\xff\xfe\n", 4), "neither TLS"},
      {"\x16" + std::string(1 << 20, 'x'), "no TLS with this run's token"},
  };
  for (const auto& [text, word] : strangers) {
    const RawPeer stranger(server_);
    stranger.send_text(text);
    const std::size_t before = log_.size();
    gather([&] { return log_.size() > before; });
    EXPECT_THAT(log_.back(), HasSubstr(word)) << text.substr(0, 60);
  }
  expect_worker_continues(worker);
}

TEST_F(Channel, AWrongTokenIsNoHello) {
  TlsPeer& worker = client();
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  TlsPeer& stranger = *clients_.emplace_back(std::make_unique<TlsPeer>(server_, std::string(32, '0')));
  stranger.send_text(hello(1));
  gather([&] { return stranger.ended(); });
  EXPECT_EQ(events_.size(), 1u);
  EXPECT_THAT(log_.back(), HasSubstr("no TLS with this run's token"));
  EXPECT_EQ(stranger.received(), "");
  expect_worker_continues(worker);
}

TEST_F(Channel, WhoKnowsTheTokenAndSaysNonsenseCostsALogLine) {
  TlsPeer& worker = client();
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const std::vector<std::pair<std::string, std::string>> strangers = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "bad line: not JSON"},
      {"{}\n", "no hello"},
      {"[1,2]\n", "not an object"},
      {"{\"type\":\"hello\",\"token\":7}\n", "token: not a string"},
      {std::string(1 << 20, 'x'), "a line beyond the limit"},
      {std::string(4000, '[') + "\n", "nested deeper"},
      {std::string("\0\xff\xfe\n", 4), "bad line"},
      {hello(0), "a second rank 0"},
      {hello(5), "rank 5 in a world of 2"},
  };
  for (const auto& [text, word] : strangers) {
    client().send_text(text);
    const std::size_t before = log_.size();
    gather([&] { return log_.size() > before; });
    EXPECT_THAT(log_.back(), HasSubstr(word)) << text.substr(0, 60);
  }
  expect_worker_continues(worker);
}

// A build of the time before TLS gets the one line that it understands, which names both builds.
TEST_F(Channel, AnOlderBuildIsRefusedInClear) {
  const RawPeer old(server_);
  message::Hello hello{.token = server_.token(), .rank = 0, .size = 2, .host = "there", .version = "0.9 (channel 1)"};
  old.send_text(encode(hello) + "\n");
  gather([&] { return !events_.empty(); });
  EXPECT_EQ(events_[0].kind, Kind::refused);
  const std::string word = old.receive();
  EXPECT_THAT(word, HasSubstr("0.9 (channel 1)"));
  EXPECT_THAT(word, HasSubstr(channel_version()));
  // Also one that claims to be this build: it would be heard by anybody.
  const RawPeer plain(server_);
  hello.version = channel_version();
  plain.send_text(encode(hello) + "\n");
  gather([&] { return events_.size() == 2; });
  EXPECT_THAT(plain.receive(), HasSubstr("not encrypted"));
}

TEST_F(Channel, AnotherVersionIsRefusedWithBoth) {
  TlsPeer& worker = client();
  worker.send_text(hello(0, "9.9.9"));
  gather([&] { return !events_.empty(); });
  EXPECT_EQ(events_[0].kind, Kind::refused);
  gather([&] { return worker.ended(); });
  const std::string& word = worker.received();
  EXPECT_THAT(word, HasSubstr("9.9.9"));
  EXPECT_THAT(word, HasSubstr(channel_version()));
}

TEST_F(Channel, ABadLineCostsOnlyThatLineAndAClosedConnectionIsAnEvent) {
  client().send_text(hello(0) + "garbage\n{\"type\":\"heartbeat\"}\n");
  gather([&] { return events_.size() == 2; });
  EXPECT_THAT(log_.back(), HasSubstr("rank 0: bad line"));
  clients_.clear();
  gather([&] { return events_.size() == 3; });
  EXPECT_EQ(events_[2].kind, Kind::closed);
  EXPECT_EQ(log_.size(), 1u) << "a worker that ends is no news: " << log_.back();
}

TEST_F(Channel, ALongLineMayFollowAHelloAtOnce) {
  TlsPeer& worker = client();
  worker.send_text(hello(0) + "{\"type\":\"note\",\"text\":\"" + std::string(20000, 'x') + "\"}\n");
  gather([&] { return events_.size() == 2; });
  EXPECT_EQ(std::get<message::Note>(events_[1].message).text.size(), 20000u);
}

TEST_F(Channel, AHelloSentAgainIsALogLineAndNoRefusal) {
  TlsPeer& first = client();
  first.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  for (const bool complete : {false, true}) {
    TlsPeer& second = client();
    if (complete) {
      const std::size_t before = events_.size();
      second.send_text(hello(1));
      gather([&] { return events_.size() > before; });
    }
    TlsPeer& again = client();
    again.send_text(hello(0));
    const std::size_t said = log_.size(), events = events_.size();
    gather([&] { return log_.size() > said; });
    EXPECT_THAT(log_.back(), HasSubstr("a second rank 0"));
    gather([&] { return again.ended(); });
    EXPECT_THAT(again.received(), HasSubstr("a second rank 0"));
    EXPECT_EQ(events_.size(), events);
    expect_worker_continues(first);
  }
}

TEST_F(Channel, AFloodOfSilentConnectionsKeepsNoWorkerOut) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  std::vector<std::unique_ptr<RawPeer>> strangers;
  for (int i = 0; i < 400; ++i) strangers.push_back(std::make_unique<RawPeer>(server_));
  TlsPeer& worker = client();
  worker.send_text(hello(1));
  gather([&] { return !events_.empty(); });
  EXPECT_EQ(events_[0].kind, Kind::hello);
  // One descriptor per stranger is this test's own end.
  EXPECT_LE(descriptors() - before - static_cast<std::ptrdiff_t>(strangers.size()), 140);
  expect_worker_continues(worker);
}

TEST_F(Channel, StrangersCostFewLogLinesWhateverTheyDo) {
  TlsPeer& worker = client();
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  for (int i = 0; i < 300; ++i) {
    const RawPeer stranger(server_);
    stranger.send_text("x\n");
    std::vector<pollfd> others;
    for (int round = 0; round < 2; ++round) (void)server_.wait(1, others);
    for (auto& line : server_.drain_log()) log_.push_back(std::move(line));
  }
  for (int i = 0; i < 300; ++i) worker.send_text("x\n");
  expect_worker_continues(worker);
  EXPECT_FALSE(log_.empty());
  EXPECT_LE(log_.size(), 21u);
}

// When descriptors run out, a connection in the queue must not stay there and keep the server awake.
TEST_F(Channel, WithoutDescriptorsItDoesNotSpin) {
  TlsPeer& worker = client();
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const RawPeer strangers[3];
  rlimit whole{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &whole), 0);
  rlimit used = whole;
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  used.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &used), 0);
  for (const RawPeer& stranger : strangers) stranger.connect_to(server_);
  int waits = 0;
  std::vector<pollfd> others;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  for (; std::chrono::steady_clock::now() < until; ++waits) (void)server_.wait(200, others);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &whole), 0);
  EXPECT_LT(waits, 100);
  gather([&] { return !log_.empty(); });
  EXPECT_THAT(log_[0], HasSubstr("could not be accepted"));
  for (const RawPeer& stranger : strangers) EXPECT_EQ(stranger.receive(), "");
  expect_worker_continues(worker);
}

// Once every rank is connected, strangers are polled at a bounded rate.
TEST_F(Channel, TalkingStrangersDoNotKeepItAwake) {
  TlsPeer &first = client(), &second = client();
  first.send_text(hello(0));
  second.send_text(hello(1));
  gather([&] { return events_.size() == 2; });
  const RawPeer stranger(server_);
  int waits = 0;
  std::vector<pollfd> others;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  for (; std::chrono::steady_clock::now() < until; ++waits) {
    stranger.send_text("x");
    const RawPeer silent(server_);
    EXPECT_TRUE(server_.wait(50, others).empty());
  }
  EXPECT_LT(waits, 100);
  expect_worker_continues(first);
}

// Random bytes within the encrypted connection: what the reader of lines and the handshake survive outside it is
// tried by changed bytes below.
TEST_F(Channel, RandomBytesNeverCrash) {
  TlsPeer& worker = client();
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const Rng rng(5, "channel");
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    std::string text = hello(1);
    for (std::uint64_t i = 0; i < 4; ++i)
      text[rng.below(trial * 8 + 2 * i, text.size() - 1)] = static_cast<char>(rng.below(trial * 8 + 2 * i + 1, 256));
    TlsPeer stranger(server_, server_.token());
    stranger.send_text(text + "\n");
    std::vector<pollfd> others;
    for (int i = 0; i < 4; ++i) {
      (void)server_.wait(1, others);
      stranger.proceed();
    }
  }
  (void)server_.drain_log();
  expect_worker_continues(worker);
}

}  // namespace
}  // namespace assay
