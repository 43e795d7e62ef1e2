// The supervisor's end of the channel with strangers and workers, over real connections. The input is a script: one
// byte for the action, one for which of eight connections to use, and for text its length and content.
#include "harness/channel/channel.h"

#include "harness/channel/connect.h"
#include "harness/run/shared_values.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/channel_peer.h"

#include <sys/socket.h>

#include <array>
#include <memory>
#include <set>

namespace assay::fuzz {

namespace {

constexpr int ranks = 2;

// A stranger in clear, or a client that knows the token.
class Connection {
 public:
  bool open() const { return raw_ || tls_; }
  void connect(const ChannelServer& server, bool secure) {
    close();
    if (secure)
      tls_ = std::make_unique<TlsPeer>(server, server.token());
    else
      raw_ = std::make_unique<RawPeer>(server);
  }
  void send(std::string_view bytes) {
    if (raw_) raw_->send_text(std::string(bytes));
    if (tls_) tls_->send_text(std::string(bytes));
  }
  void proceed() {
    if (tls_) tls_->proceed();
  }
  void shut_down_sending() const {
    if (open()) ::shutdown(raw_ ? raw_->fd() : tls_->raw().fd(), SHUT_WR);
  }
  void close() { raw_.reset(), tls_.reset(); }

 private:
  std::unique_ptr<RawPeer> raw_;
  std::unique_ptr<TlsPeer> tls_;
};

class Script {
 public:
  explicit Script(std::string_view input) : rest_(input) {}
  bool done() const { return rest_.empty(); }
  int byte() {
    if (rest_.empty()) return 0;
    const int value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view text() {
    const auto wanted = static_cast<std::size_t>(byte());  // before the size is asked for
    const std::size_t length = std::min(wanted, rest_.size());
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }

 private:
  std::string_view rest_;
};

std::string hello(const ChannelServer& server, int rank, std::string_view host) {
  message::Hello hello = hello_message(rank > ranks ? "guest" : "worker", rank, ranks);
  hello.host = host;
  hello.token = server.token();  // as builds before TLS do
  return encode(hello) + "\n";
}

// Checks what must hold for events, whatever was sent.
void check_events(ChannelServer& server, std::set<int>& present, SharedValues& shared) {
  std::vector<pollfd> others;
  for (const ChannelServer::Event& event : server.wait(0, others)) {
    using Kind = ChannelServer::Event::Kind;
    if (event.kind == Kind::refused) {
      expect(event.rank == -1, "a connected rank was refused");
      continue;
    }
    expect(event.rank >= 0, "an event without a rank");
    if (event.kind == Kind::hello) {
      expect(present.insert(event.rank).second, "a rank joined twice");
      (void)server.send(event.rank, message::Where{});
    }
    if (event.kind == Kind::message) {
      expect(present.contains(event.rank), "a message from an absent rank");
      if (const auto* share = std::get_if<message::Share>(&event.message))
        accepts("", [&] { shared.share(event.rank, *share, server, ranks); });
    }
    if (event.kind == Kind::closed) expect(present.erase(event.rank) == 1, "a rank left twice");
  }
  std::vector<pollfd> fds;
  server.add_fds(fds);
  expect(fds.size() >= present.size(), "a rank without a descriptor");
  expect(server.silent_peers(3600).empty(), "a rank that was silent for an hour");
  for (const std::string& line : server.drain_log()) expect_message(line, "channel: ");
}

}  // namespace

void channel(std::string_view input) {
  static ChannelServer server(ChannelServer::Listen{.guests = true});
  server.expect(ranks);
  SharedValues shared;
  std::array<Connection, 8> connections;
  std::set<int> present;
  Script script(input.substr(0, 256));  // only to be quick
  while (!script.done()) {
    const int action = script.byte();
    const auto which = static_cast<std::size_t>(script.byte()) % connections.size();
    Connection& connection = connections[which];
    if (!connection.open()) {
      check_events(server, present, shared);  // accepts those that wait: a connection beyond the backlog takes minutes
      connection.connect(server, which % 2 == 0);
    }
    for (Connection& one : connections) one.proceed();
    switch (action % 8) {
      case 0: check_events(server, present, shared); break;
      case 1: connection.send(hello(server, script.byte() % (ranks + 2), "host")); break;
      case 2: {  // a hello with some of its bytes changed
        std::string text = hello(server, 0, script.text());
        const auto at = static_cast<std::size_t>(script.byte());
        if (at < text.size()) text[at] = static_cast<char>(script.byte());
        connection.send(text);
        break;
      }
      case 3: connection.shut_down_sending(); break;
      case 4: connection.close(); break;
      case 5:
        connection.send(std::string(static_cast<std::size_t>(script.byte()) * 64, static_cast<char>(script.byte())));
        break;
      case 7:  // the supervisor gives a rank up
        if (present.erase(static_cast<int>(which)) == 1) server.disconnect(static_cast<int>(which));
        break;
      default: connection.send(script.text()); break;
    }
  }
  for (int i = 0; i < 4; ++i) {
    check_events(server, present, shared);
    for (Connection& one : connections) one.proceed();
  }
}

}  // namespace assay::fuzz
