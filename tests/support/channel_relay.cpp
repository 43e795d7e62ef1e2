// channel_relay PORT TOKEN: relays one client to the supervisor at 127.0.0.1:PORT, for a test that changes messages. It
// prints the port that it listens at, then each line of the client; the line that it gets back on stdin is sent
// instead.
#include "harness/channel/tls.h"
#include "harness/core/error.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

namespace {

using assay::TlsConnection;
using State = TlsConnection::State;

sockaddr_in loopback(int port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  return place;
}

// A TLS connection that waits.
class Link {
 public:
  Link(TlsConnection::End end, int fd, const std::string& token) : fd_(fd), tls_(end, fd, token) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    State state = State::wants_read;
    while ((state = tls_.shake_hands()) != State::done) wait_for(state);
  }
  int fd() const { return fd_; }
  // Appends what has come; false at the end.
  bool read(std::string& to) {
    char block[16384];
    std::size_t got = 0;
    State state = State::done;
    while ((state = tls_.read(block, sizeof block, got)) == State::done) to.append(block, got);
    return state == State::wants_read;
  }
  void write(std::string_view bytes) {
    while (!bytes.empty())
      if (const State state = tls_.write(bytes); state != State::done) wait_for(state);
  }

 private:
  void wait_for(State state) const {
    if (!TlsConnection::waits(state) || !tls_.wait(state, std::chrono::steady_clock::now() + std::chrono::hours(1)))
      throw assay::Error(tls_.why());
  }

  int fd_;
  TlsConnection tls_;
};

int connect_to(int port) {
  const sockaddr_in place = loopback(port);
  for (;; ::usleep(50'000)) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0) return fd;
    ::close(fd);
  }
}

void relay(int port, const std::string& token) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place = loopback(0);
  socklen_t length = sizeof place;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&place), length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&place), &length) != 0)
    throw assay::Error("cannot listen");
  std::cout << ntohs(place.sin_port) << std::endl;
  Link client(TlsConnection::End::server, ::accept(listener, nullptr, nullptr), token);
  Link supervisor(TlsConnection::End::client, connect_to(port), token);
  std::string said, answered;
  for (;;) {
    pollfd fds[2] = {{client.fd(), POLLIN, 0}, {supervisor.fd(), POLLIN, 0}};
    (void)::poll(fds, 2, -1);
    const bool open = client.read(said);
    for (std::size_t end = 0; (end = said.find('\n')) != said.npos; said.erase(0, end + 1)) {
      std::cout << said.substr(0, end) << std::endl;
      std::string changed;
      if (!std::getline(std::cin, changed)) return;
      supervisor.write(changed + "\n");
    }
    const bool answering = supervisor.read(answered);
    client.write(answered);
    answered.clear();
    if (!open || !answering) return;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  try {
    relay(std::atoi(words[1]), words[2]);
  } catch (const std::exception& error) {
    std::cerr << "channel_relay: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
