#include "tests/support/channel_peer.h"

#include "harness/channel/channel.h"
#include "harness/core/error.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace assay {

RawPeer::RawPeer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}

RawPeer::~RawPeer() { ::close(fd_); }

void RawPeer::connect_to(const ChannelServer& server) const {
  const std::string& address = server.address();
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) {
    // After a signal the connection is still being established.
    pollfd writable{fd_, POLLOUT, 0};
    if (errno != EINTR || ::poll(&writable, 1, 1000) != 1) throw Error(std::strerror(errno));
  }
  // As the program's clients do: what follows the handshake must not wait until that is acknowledged.
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Reset on close, so that thousands of ports do not pile up in TIME_WAIT.
  const linger reset{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

void RawPeer::send_text(const std::string& text) const {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t got = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got <= 0) return;
    sent += static_cast<std::size_t>(got);
  }
}

std::string RawPeer::receive() const {
  char block[4096];
  const ssize_t got = ::recv(fd_, block, sizeof block, 0);
  return got > 0 ? std::string(block, static_cast<std::size_t>(got)) : std::string();
}

TlsPeer::TlsPeer(const ChannelServer& server, const std::string& token)
    : raw_(server), tls_(TlsConnection::End::client, raw_.fd(), token) {
  ::fcntl(raw_.fd(), F_SETFL, O_NONBLOCK);
  proceed();
}

void TlsPeer::send_text(const std::string& text) {
  unsent_ += text;
  proceed();
}

void TlsPeer::proceed() {
  using State = TlsConnection::State;
  const auto ends = [](State state) { return state != State::done && !TlsConnection::waits(state); };
  if (ended_) return;
  if (!ready_) {
    const State state = tls_.shake_hands();
    ready_ = state == State::done;
    ended_ = ends(state);
    if (!ready_) return;
  }
  for (std::string_view rest = unsent_; !rest.empty();) {
    const State state = tls_.write(rest);
    unsent_ = rest;
    ended_ = ends(state);
    if (state != State::done) break;
    rest = unsent_;
  }
  char block[4096];
  std::size_t got = 0;
  State state = State::done;
  while ((state = tls_.read(block, sizeof block, got)) == State::done) received_.append(block, got);
  ended_ = ended_ || ends(state);
}

}  // namespace assay
