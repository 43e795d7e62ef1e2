// The supervisor's end of the channel: TLS over TCP with the run's token as key, one message per line. Whatever
// strangers send costs at most a log line.
#pragma once

#include "harness/channel/messages.h"
#include "harness/channel/tls.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr int channel_protocol = 2;
// The version of this build; both ends must have the same.
std::string channel_version();

// Splits bytes into lines of bounded length.
class LineBuffer {
 public:
  enum class Fed { line, wants_more, too_long };

  explicit LineBuffer(std::size_t limit) : limit_(limit) {}
  // Consumes bytes from the front, up to the end of a line, which is moved to `line`, or all of them.
  Fed next(std::string_view& bytes, std::string& line);
  // Consumes all bytes and appends the whole lines; false when a line exceeds the limit.
  bool feed(std::string_view bytes, std::vector<std::string>& lines);
  void set_limit(std::size_t limit) { limit_ = limit; }

 private:
  std::size_t limit_;
  std::string text_;
};

// Sends a whole message within `seconds`; false when the other end is gone or does not read.
bool send_line(TlsConnection& connection, const Message& message, double seconds);

// Strangers are bounded in memory, file descriptors, time and log lines. Once every rank of the group is connected,
// they are polled at most 10 times per second.
class ChannelServer {
 public:
  // On loopback only, unless several hosts take part.
  struct Listen {
    // From other hosts too: at the addresses of `hosts`, or at every one of this host's if not all of them are its own.
    bool other_hosts = false;
    int port = 0;            // 0: any that is free
    std::string hosts = {};  // names or addresses of this host, separated by commas; empty: its own name
    bool guests = false;     // whether clients that are no rank may connect
    std::string token = {};  // for the whole life of the server; empty: a random one per group
  };
  // Throws Error when it cannot listen there.
  explicit ChannelServer(const Listen& where);
  ChannelServer();  // on loopback
  ~ChannelServer();
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  // The value of ASSAY_SUPERVISOR: host:port, or several separated by commas; "@NAME" where no interface is up.
  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }
  // Disconnects every peer and makes a new token, so that stragglers of an earlier group are strangers.
  // `size` is the world size that a hello must name. A "guest" gets a number from `size` on.
  void expect(int size);
  // Ends the connection of a rank or guest, without an event.
  void disconnect(int rank);

  struct Event {
    enum class Kind { hello, message, closed, refused };
    Kind kind;
    int rank;         // -1 for refused
    Message message;  // a Hello, a Refused, or what a peer sent
  };
  // Waits up to `timeout_ms` for the channel or for `others`, whose revents are set.
  std::vector<Event> wait(int timeout_ms, std::vector<pollfd>& others);
  // Adds the descriptors that wait() waits for, for a poll elsewhere that is followed by wait(0).
  void add_fds(std::vector<pollfd>& fds) const;
  // False when the rank is not connected or does not read.
  bool send(int rank, const Message& message);
  // The peers that have sent nothing for so long. Time when nobody called wait() does not count.
  std::vector<int> silent_peers(double seconds) const;
  // Log lines since the last call: a few, then one per minute that counts the others.
  std::vector<std::string> drain_log();

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    int fd = -1;
    int rank = -1;  // -1 until its hello was accepted
    LineBuffer lines;
    Clock::time_point since;  // when it connected
    Clock::time_point heard;
    std::string from;
    std::unique_ptr<TlsConnection> tls = {};  // absent until its first byte has come
    bool secure = false;                      // it has proved that it knows the token
  };

  // Whether the Hello of a rank is missing.
  bool expecting() const;
  void listen_at(const Listen& where);
  void listen_without_network();
  void add_listener(const sockaddr* place, socklen_t length, bool reuse);
  // Whether one more stranger may connect; drops the one that has been silent longest to make room.
  bool make_room();
  void accept_peers(int listener);
  void read_peer(Peer& peer, std::vector<Event>& events);
  // Whether the peer has proved that it knows the token.
  bool secure(Peer& peer, std::vector<Event>& events);
  // A build before channel_protocol 2 says hello in clear: one that knows the token is told why it is refused.
  void refuse_in_clear(Peer& peer, std::vector<Event>& events);
  void refuse(Peer& peer, message::Refused refusal, std::vector<Event>& events);
  void lost(Peer& peer, std::vector<Event>& events);
  void read_lines(Peer& peer, std::string_view bytes, std::vector<Event>& events);
  void handle_line(Peer& peer, const std::string& line, std::vector<Event>& events);
  void handle_first_line(Peer& peer, const std::string& line, std::vector<Event>& events);
  // Why a hello is refused; empty when it is accepted.
  std::string check_hello(const message::Hello& hello) const;
  void drop(Peer& peer, const std::string& why);
  void log(std::string line);
  void close_all();

  std::vector<int> listeners_;
  int spare_ = -1;  // closed when descriptors run out, so that a waiting connection can be accepted and closed
  std::string address_;
  bool guests_allowed_ = false;
  bool fixed_token_ = false;
  std::string token_;
  int size_ = 0;
  int guests_ = 0;  // since expect()
  std::vector<Peer> peers_;
  Clock::time_point waited_{};      // the end of the last wait()
  Clock::time_point rest_until_{};  // strangers are not polled until then
  std::vector<std::string> log_;
  Clock::time_point log_since_{};
  std::size_t logged_ = 0, suppressed_ = 0;  // lines since then
};

}  // namespace assay
