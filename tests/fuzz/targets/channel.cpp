// The supervisor's end of the channel with strangers and workers, over real connections. The input is a script: one
// byte for the action, one for which of eight connections to use, and for text its length and content.
#include "harness/channel/channel.h"

#include "harness/channel/connect.h"
#include "harness/run/shared_values.h"
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>

namespace assay::fuzz {

namespace {

constexpr int ranks = 2;

class Connection {
 public:
  ~Connection() { close(); }
  bool open() const { return fd_ >= 0; }
  void connect(const ChannelServer& server) {
    close();
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(server.address().substr(server.address().rfind(':') + 1))));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) {
      // Interrupted by libFuzzer's timer; the connection is still being established.
      expect(errno == EINTR, std::strerror(errno));
      pollfd writable{fd_, POLLOUT, 0};
      while (::poll(&writable, 1, 1000) < 0) expect(errno == EINTR, std::strerror(errno));
    }
    // Reset on close, so that thousands of ports do not pile up in TIME_WAIT.
    const linger reset{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  void send(std::string_view bytes) const {
    if (fd_ >= 0 && !bytes.empty()) (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void shut_down_sending() const {
    if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
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
    const auto length = std::min<std::size_t>(static_cast<std::size_t>(byte()), rest_.size());
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }

 private:
  std::string_view rest_;
};

std::string hello(const ChannelServer& server, int rank, std::string_view host) {
  message::Hello hello = hello_message(rank > ranks ? "guest" : "worker", server.token(), rank, ranks);
  hello.host = host;
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
    if (event.kind == Kind::hello) expect(present.insert(event.rank).second, "a rank joined twice");
    if (event.kind == Kind::message) {
      expect(present.contains(event.rank), "a message from an absent rank");
      if (const auto* share = std::get_if<message::Share>(&event.message))
        accepts("", [&] { shared.share(event.rank, *share, server, ranks); });
    }
    if (event.kind == Kind::closed) expect(present.erase(event.rank) == 1, "a rank left twice");
  }
  for (const std::string& line : server.drain_log()) expect_message(line, "channel: ");
}

}  // namespace

void channel(std::string_view input) {
  static ChannelServer server(ChannelServer::Listen{.guests = true});
  server.expect(ranks);
  SharedValues shared;
  std::array<Connection, 8> connections;
  std::set<int> present;
  Script script(input);
  while (!script.done()) {
    const int action = script.byte();
    Connection& connection = connections[static_cast<std::size_t>(script.byte()) % connections.size()];
    if (!connection.open()) connection.connect(server);
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
      default: connection.send(script.text()); break;
    }
  }
  for (int i = 0; i < 3; ++i) check_events(server, present, shared);
}

}  // namespace assay::fuzz
