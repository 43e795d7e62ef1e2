// One end of a TLS 1.3 connection (RFC 8446) whose ends know each other by a secret, the run's token: an external
// pre-shared key with an ephemeral key exchange. There are no certificates, tickets or early data, so what was recorded
// cannot be read later, nor sent again.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

struct ssl_st;

namespace assay {

class TlsConnection {
 public:
  enum class End { client, server };
  enum class State { done, wants_read, wants_write, closed, failed };

  // `fd` is a connected, non-blocking socket, which the caller closes. Throws Error if OpenSSL has no memory.
  TlsConnection(End end, int fd, std::string_view token);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // Call again when the socket is ready for what it wants. `done` proves that the other end knows the token.
  State shake_hands();
  // Whether the other end has shown that it knows the token, or has copied what another showed: before `done`.
  bool token_shown() const;
  // Reads up to `size` bytes; `got` is set when done. `closed`: the other end or the network ended the connection,
  // which TLS need not tell apart, as a message is a whole line.
  State read(char* to, std::size_t size, std::size_t& got);
  // Removes from the front of `bytes` what was sent. Thread-safe beside read().
  State write(std::string_view& bytes);
  // Whether the state is one of the two that wait for the socket.
  static bool waits(State state) { return state == State::wants_read || state == State::wants_write; }
  // Waits until the socket is ready for what such a state wants; false at `until`.
  bool wait(State state, std::chrono::steady_clock::time_point until) const;
  // Why the connection is closed or the last call failed.
  const std::string& why() const { return why_; }

 private:
  State state_of(int result);

  std::mutex mutex_;  // OpenSSL's connections are not thread-safe
  struct Free {
    void operator()(ssl_st* connection) const;
  };
  int fd_;
  std::string key_;
  std::unique_ptr<ssl_st, Free> connection_;
  std::string why_;
};

}  // namespace assay
