// Connecting with retries, receiving, and keepalive.
#include "harness/channel/connect.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/units.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace assay {

namespace {

// For a host that drops packets without an answer.
constexpr int connect_timeout_ms = 5000;
constexpr auto handshake_patience = std::chrono::seconds(30);  // the supervisor may be busy

// The connected socket, or -1 with errno set.
int connect_once(const sockaddr* place, socklen_t length) {
  const int fd = ::socket(place->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int error = 0;
  if (::connect(fd, place, length) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd writable{fd, POLLOUT, 0};
      socklen_t size = sizeof error;
      if (::poll(&writable, 1, connect_timeout_ms) <= 0)
        error = ETIMEDOUT;
      else if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    }
  }
  if (error == 0) return fd;
  ::close(fd);
  errno = error;
  return -1;
}

// The connected socket, or -1 and `why`.
int try_address(const std::string& address, std::string& why) {
  if (address.starts_with('@')) {
    const auto [place, length] = abstract_socket(address);
    const int fd = connect_once(reinterpret_cast<const sockaddr*>(&place), length);
    if (fd < 0) why = fmt::format("supervisor {} cannot be reached: {}", address, std::strerror(errno));
    return fd;
  }
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) throw Error(fmt::format("ASSAY_SUPERVISOR={}: not HOST:PORT", address));
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string host = address.substr(0, colon), port = address.substr(colon + 1);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    why = fmt::format("supervisor {} cannot be found: {}", address, gai_strerror(error));
    return -1;
  }
  int fd = -1;
  for (const addrinfo* place = found; place && fd < 0; place = place->ai_next)
    fd = connect_once(place->ai_addr, place->ai_addrlen);
  if (fd < 0) why = fmt::format("supervisor {} cannot be reached: {}", address, std::strerror(errno));
  freeaddrinfo(found);
  return fd;
}

int connect_to(const std::string& addresses, double patience_seconds) {
  const auto until = Clock::now() + std::chrono::duration<double>(patience_seconds);
  for (;;) {
    std::string why;
    std::size_t start = 0;
    while (start <= addresses.size()) {
      const std::size_t comma = std::min(addresses.find(',', start), addresses.size());
      if (const int fd = try_address(addresses.substr(start, comma - start), why); fd >= 0) {
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        watch_connection(fd);
        return fd;
      }
      start = comma + 1;
    }
    if (Clock::now() >= until) throw Error(why);
    ::poll(nullptr, 0, 200);
  }
}

}  // namespace

std::pair<sockaddr_un, socklen_t> abstract_socket(std::string_view address) {
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  address.remove_prefix(1);
  const std::size_t length = address.copy(place.sun_path + 1, sizeof place.sun_path - 1);
  return {place, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)};
}

ChannelClient::ChannelClient(const std::string& addresses, const std::string& token, std::size_t line_bytes,
                             double patience_seconds)
    : fd_(connect_to(addresses, patience_seconds)), buffer_(line_bytes) {
  try {
    tls_ = std::make_unique<TlsConnection>(TlsConnection::End::client, fd_, token);
    shake_hands(addresses);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

ChannelClient::~ChannelClient() { ::close(fd_); }

void ChannelClient::shake_hands(const std::string& addresses) {
  const auto until = Clock::now() + handshake_patience;
  TlsConnection::State state = TlsConnection::State::done;
  while ((state = tls_->shake_hands()) != TlsConnection::State::done) {
    const bool waits = TlsConnection::waits(state);
    if (!waits || !tls_->wait(state, until))
      throw Error(fmt::format("supervisor {} does not prove that it knows this run's token: {}", addresses,
                              waits ? "no answer" : tls_->why()));
  }
}

bool ChannelClient::receive(std::vector<Message>& messages) {
  pollfd readable{fd_, POLLIN, 0};
  while (::poll(&readable, 1, -1) < 0 && errno == EINTR) {
  }
  std::vector<std::string> lines;
  TlsConnection::State state = TlsConnection::State::done;
  char block[16384];
  std::size_t got = 0;
  while ((state = tls_->read(block, sizeof block, got)) == TlsConnection::State::done)
    if (!buffer_.feed({block, got}, lines)) return false;
  // What was said before the end comes first; the next call sees the end again.
  if (!TlsConnection::waits(state) && lines.empty()) return false;
  for (const std::string& line : lines) messages.push_back(decode(line));
  return true;
}

double heartbeat_limit() {
  const char* text = std::getenv("ASSAY_HEARTBEAT_LIMIT");
  return text && *text ? parse_seconds(text) : 30.0;
}

bool HeartbeatTimer::due() {
  const auto now = Clock::now();
  if (now < next_) return false;
  next_ = now + heartbeat_period;
  return true;
}

int HeartbeatTimer::wait_ms() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next_ - Clock::now()).count();
  return std::max(0, static_cast<int>(left) + 1);
}

void watch_connection(int fd) {
  const double limit = heartbeat_limit();
  const int on = 1, probes = 3, idle = std::max(1, static_cast<int>(limit / 2)),
            interval = std::max(1, static_cast<int>(limit / 8)), ms = static_cast<int>(1000 * limit);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  // Also for data that was sent and never acknowledged.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

message::Hello hello_message(const std::string& role, int rank, int size) {
  return {.role = role,
          .rank = rank,
          .size = size,
          .host = this_host(),
          .pid = ::getpid(),
          .version = channel_version(),
          .architecture = machine_architecture()};
}

}  // namespace assay
