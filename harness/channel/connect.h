// A client's end of the channel: reaching a supervisor, messages both ways, and noticing that the other end is gone.
#pragma once

#include "harness/channel/channel.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// The first message of every client.
message::Hello hello_message(const std::string& role, int rank, int size);

class ChannelClient {
 public:
  // Connects to an address of ChannelServer, or to the first that answers of several, separated by commas; retries for
  // `patience` seconds. Lines from the supervisor may be `line_bytes` long. Throws Error naming the address, also when
  // what answers there does not know the token.
  ChannelClient(const std::string& addresses, const std::string& token, std::size_t line_bytes,
                double patience_seconds = 0);
  ~ChannelClient();
  ChannelClient(const ChannelClient&) = delete;
  ChannelClient& operator=(const ChannelClient&) = delete;

  int fd() const { return fd_; }
  // False when the supervisor is gone, or has not read for `seconds`. Thread-safe beside receive().
  bool send(const Message& message, double seconds) { return send_line(*tls_, message, seconds); }
  // Waits for bytes, then appends the messages that they complete. False when the supervisor is gone or a line is too
  // long; throws Error on a line that is no message.
  bool receive(std::vector<Message>& messages);

 private:
  void shake_hands(const std::string& addresses);

  int fd_ = -1;
  std::unique_ptr<TlsConnection> tls_;
  LineBuffer buffer_;
};

// The socket of an address "@NAME" (unix(7), abstract): for a sandbox whose loopback interface is down.
std::pair<sockaddr_un, socklen_t> abstract_socket(std::string_view address);

// Makes a connection end when the other host or the link has been gone for heartbeat_limit() seconds.
void watch_connection(int fd);

// How often both ends send a heartbeat.
inline constexpr std::chrono::milliseconds heartbeat_period{2000};
// ASSAY_HEARTBEAT_LIMIT, 30 by default: seconds without a message after which the other end counts as dead.
double heartbeat_limit();

// When the next heartbeat is due.
class HeartbeatTimer {
 public:
  // True once per period.
  bool due();
  // Milliseconds until then, for a poll.
  int wait_ms() const;

 private:
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace assay
