// The supervisor's end of the channel: TCP, one JSON object a line. What strangers send costs a log line, no more.
#pragma once

#include "harness/core/json_fwd.h"

#include <poll.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr int channel_protocol = 1;
// Version of this build as both ends compare it: equal or refused.
std::string channel_version();

// Bytes to lines, with a bound.
class LineBuffer {
 public:
  enum class Fed { line, wants_more, too_long };

  explicit LineBuffer(std::size_t limit) : limit_(limit) {}
  // Takes bytes off the front until a line is whole, which is moved to `line`, or until none is left.
  Fed next(std::string_view& bytes, std::string& line);
  // All of the bytes: moves whole lines to `lines`; false when a line grows beyond the limit.
  bool feed(std::string_view bytes, std::vector<std::string>& lines);
  // Holds from the next byte on.
  void set_limit(std::size_t limit) { limit_ = limit; }

 private:
  std::size_t limit_;
  std::string text_;
};

// Sends all of a line within `seconds`; false when the other end is gone or does not read.
bool send_line(int fd, const Json& message, double seconds);

// What strangers send is bounded in memory, file descriptors, time and log lines. While every rank of the group is
// there, nobody is expected: then strangers are looked at ten times a second and no oftener, whatever they do.
class ChannelServer {
 public:
  // Loopback alone, unless several hosts take part.
  struct Listen {
    bool every_interface = false;
    int port = 0;            // 0: any that is free
    std::string hosts = {};  // how the other hosts reach this one, several separated by commas; empty: by its name
    std::string token = {};  // stands for the whole life of the server; empty: a random one a group
  };
  // Throws Error when it cannot listen there.
  explicit ChannelServer(const Listen& where);
  ChannelServer();  // on loopback
  ~ChannelServer();
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  // host:port for ASSAY_SUPERVISOR, several separated by commas where this host has several names.
  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }
  // Forgets every peer and makes a new token, so that stragglers of an ended group are strangers.
  // `size` is the world size that a hello must name. Who says hello as a "guest" is no rank: it gets a number from
  // `size` on.
  void expect(int size);
  // Ends the connection of a rank or guest; no event tells of it.
  void part_with(int rank);

  struct Event {
    enum class Kind { hello, message, closed, refused };
    Kind kind;
    int rank;      // -1 for refused
    Json message;  // of hello and message; a refusal's holds "reason" and the "rank" that the hello named
  };
  // Waits for something on the channel or on `others` (their revents are set), at most `timeout_ms`.
  std::vector<Event> wait(int timeout_ms, std::vector<pollfd>& others);
  // What wait() waits for, so that another wait may watch it too and then call wait(0).
  void add_fds(std::vector<pollfd>& fds) const;
  // False when the rank is not connected or does not read.
  bool send(int rank, const Json& message);
  // Lines about strangers since the last call: a few, then one a minute that counts the rest.
  std::vector<std::string> take_log();

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    int fd = -1;
    int rank = -1;  // -1 until its hello was accepted
    LineBuffer lines;
    Clock::time_point since;
    std::string from;
  };

  // Whether a rank has yet to say hello.
  bool expecting() const;
  // Whether one more stranger may come in; ends the one that has been silent longest to make room.
  bool make_room();
  void accept_peers();
  void read_peer(Peer& peer, std::vector<Event>& events);
  void take_line(Peer& peer, const std::string& line, std::vector<Event>& events);
  // Empty when the hello is good, else why it is refused.
  std::string check_hello(const Json& hello) const;
  void drop(Peer& peer, const std::string& why);
  void remark(std::string line);
  void close_all();

  int listener_ = -1;
  int spare_ = -1;  // given up when no descriptor is left, so that the stranger who waits can be sent away
  std::string address_;
  bool fixed_token_ = false;
  std::string token_;
  int size_ = 0;
  int guests_ = 0;  // that came since expect()
  std::vector<Peer> peers_;
  Clock::time_point rest_until_{};  // strangers wait so long
  std::vector<std::string> log_;
  Clock::time_point log_since_{};
  std::size_t said_ = 0, unsaid_ = 0;  // lines since then
};

}  // namespace assay
