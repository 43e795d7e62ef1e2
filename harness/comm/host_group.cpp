#include "harness/comm/host_group.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace assay {

namespace {

// A rank's first message; the token keeps strangers out.
struct Hello {
  std::array<char, 32> token;
  std::int32_t rank;
};

struct Socket {
  int fd = -1;
  Socket() = default;
  explicit Socket(int made) : fd(made) {}
  ~Socket() {
    if (fd >= 0) ::close(fd);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int release() { return std::exchange(fd, -1); }
};

// Moves all of the bytes, or returns false: the other end disconnected, or `until` has passed.
bool move_all(int fd, char* data, std::size_t bytes, bool sending, Clock::time_point until = Clock::time_point::max()) {
  while (bytes > 0) {
    const ssize_t moved =
        sending ? ::send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : ::recv(fd, data, bytes, MSG_DONTWAIT);
    if (moved > 0) {
      data += moved;
      bytes -= static_cast<std::size_t>(moved);
      continue;
    }
    if (moved == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
    int wait_ms = -1;
    if (until != Clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) return false;
      wait_ms = static_cast<int>(std::min<long long>(left, 1000));
    }
    pollfd ready{fd, static_cast<short>(sending ? POLLOUT : POLLIN), 0};
    ::poll(&ready, 1, wait_ms);
  }
  return true;
}

void no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

HostGroup::HostGroup(int rank, int size, bool several_hosts, const Share& share, double timeout_seconds,
                     const std::string& note)
    : rank_(rank), size_(size), several_hosts_(several_hosts), timeout_(timeout_seconds) {
  ASSAY_CHECK(rank >= 0 && rank < size, "rank {} in a world of {}", rank, size);
  try {
    if (rank_ == 0)
      listen_and_accept(share, note);
    else
      connect_to_first(share);
  } catch (...) {
    for (const int peer : peers_)
      if (peer >= 0) ::close(peer);
    throw;
  }
}

HostGroup::~HostGroup() {
  for (const int peer : peers_)
    if (peer >= 0) ::close(peer);
}

void HostGroup::listen_and_accept(const Share& share, const std::string& note) {
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_));
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(several_hosts_ ? INADDR_ANY : INADDR_LOOPBACK);
  socklen_t length = sizeof place;
  if (listener.fd < 0 || ::bind(listener.fd, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(listener.fd, 128) != 0 || ::getsockname(listener.fd, reinterpret_cast<sockaddr*>(&place), &length) != 0)
    throw Error(fmt::format("rank 0 cannot listen for the other ranks: {}", std::strerror(errno)));
  char name[256] = "127.0.0.1";
  if (several_hosts_) gethostname(name, sizeof name - 1);
  const std::string token = random_token();
  note_ = note;
  share(fmt::format("{} {} {} {}", name, ntohs(place.sin_port), token, note));

  peers_.assign(static_cast<std::size_t>(size_), -1);
  for (int missing = size_ - 1; missing > 0;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) {
      std::string names;
      for (int other = 1; other < size_; ++other)
        if (peers_[static_cast<std::size_t>(other)] < 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", other);
      throw Error(fmt::format("rank 0 timed out after {:.3g} s waiting for rank {} of {}", timeout_, names, size_));
    }
    pollfd ready{listener.fd, POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(std::min<long long>(left, 1000)));
    Socket peer(::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.fd < 0) continue;
    Hello hello{};
    // Do not wait long for a stranger that sends nothing.
    const auto hello_by = std::min(until, Clock::now() + std::chrono::seconds(5));
    if (!move_all(peer.fd, reinterpret_cast<char*>(&hello), sizeof hello, false, hello_by) ||
        std::string_view(hello.token.data(), hello.token.size()) != token || hello.rank < 1 || hello.rank >= size_ ||
        peers_[static_cast<std::size_t>(hello.rank)] >= 0)
      continue;
    no_delay(peer.fd);
    peers_[static_cast<std::size_t>(hello.rank)] = peer.release();
    --missing;
  }
}

void HostGroup::connect_to_first(const Share& share) {
  const std::string text = share("");
  const std::size_t host_end = text.find(' '), port_end = text.find(' ', host_end + 1);
  const std::size_t token_end = port_end == text.npos ? text.npos : text.find(' ', port_end + 1);
  Hello hello{};
  hello.rank = rank_;
  ASSAY_CHECK(token_end != text.npos && token_end - port_end - 1 == hello.token.size(), "rank 0's address is \"{}\"",
              text);
  const std::string host = text.substr(0, host_end), port = text.substr(host_end + 1, port_end - host_end - 1);
  std::copy_n(text.data() + port_end + 1, hello.token.size(), hello.token.data());
  note_ = text.substr(token_end + 1);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    throw Error(fmt::format("rank 0 at {} cannot be found: {}", host, gai_strerror(error)));
  int error = ECONNREFUSED;
  for (const addrinfo* place = found; place && peers_.empty(); place = place->ai_next) {
    Socket peer(::socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (peer.fd >= 0 && ::connect(peer.fd, place->ai_addr, place->ai_addrlen) == 0)
      peers_.push_back(peer.release());
    else
      error = errno;
  }
  freeaddrinfo(found);
  if (peers_.empty())
    throw Error(fmt::format("rank 0 at {}:{} cannot be reached: {}", host, port, std::strerror(error)));
  no_delay(peers_[0]);
  if (!move_all(peers_[0], reinterpret_cast<char*>(&hello), sizeof hello, true)) throw Error("rank 0 disconnected");
}

void HostGroup::all_gather(const void* send, void* receive, std::size_t bytes) {
  const auto at = [&](int rank) { return static_cast<char*>(receive) + static_cast<std::size_t>(rank) * bytes; };
  const std::size_t whole = bytes * static_cast<std::size_t>(size_);
  if (bytes == 0) return;
  if (at(rank_) != send) std::memcpy(at(rank_), send, bytes);
  if (rank_ != 0) {
    if (!move_all(peers_[0], at(rank_), bytes, true) || !move_all(peers_[0], at(0), whole, false))
      throw Error("rank 0 disconnected");
    return;
  }
  for (const bool sending : {false, true})
    for (int other = 1; other < size_; ++other) {
      const int peer = peers_[static_cast<std::size_t>(other)];
      if (!move_all(peer, sending ? at(0) : at(other), sending ? whole : bytes, sending))
        throw Error(fmt::format("rank {} disconnected", other));
    }
}

void HostGroup::barrier() {
  using Nanoseconds = std::chrono::nanoseconds;
  std::int64_t go = 0;
  char arrived = 1;
  if (rank_ != 0) {
    if (!move_all(peers_[0], &arrived, 1, true) || !move_all(peers_[0], reinterpret_cast<char*>(&go), sizeof go, false))
      throw Error("rank 0 disconnected");
  } else {
    const auto gone = [](int rank) { return Error(fmt::format("rank {} disconnected", rank)); };
    for (int other = 1; other < size_; ++other)
      if (!move_all(peers_[static_cast<std::size_t>(other)], &arrived, 1, false)) throw gone(other);
    // When the last rank has the message, at about 8 us for each.
    const auto moment = Clock::now() + std::chrono::microseconds(20 + 8 * size_);
    go = std::chrono::duration_cast<Nanoseconds>(moment.time_since_epoch()).count();
    for (int other = 1; other < size_; ++other)
      if (!move_all(peers_[static_cast<std::size_t>(other)], reinterpret_cast<char*>(&go), sizeof go, true))
        throw gone(other);
  }
  if (several_hosts_ || size_ == 1) return;  // their clocks differ
  while (std::chrono::duration_cast<Nanoseconds>(Clock::now().time_since_epoch()).count() < go) {
  }
}

std::unique_ptr<HostGroup> HostGroup::split(int colour, int key) {
  struct Member {
    int colour, key, rank;
    auto operator<=>(const Member&) const = default;
  };
  const Member own{colour, key, rank_};
  std::vector<Member> all(static_cast<std::size_t>(size_));
  all_gather(&own, all.data(), sizeof own);
  std::vector<Member> part;
  for (const Member& member : all)
    if (member.colour == colour) part.push_back(member);
  std::ranges::sort(part);
  const auto place = static_cast<int>(std::ranges::find(part, own) - part.begin());
  // Every rank of the whole group takes part: the first of each colour with its address, the others with nothing.
  using Text = std::array<char, 512>;
  const auto share = [&](const std::string& text) {
    Text mine{};
    std::copy_n(text.begin(), std::min(text.size(), mine.size() - 1), mine.begin());
    std::vector<Text> texts(static_cast<std::size_t>(size_));
    all_gather(mine.data(), texts.data(), sizeof mine);
    return std::string(texts[static_cast<std::size_t>(part.front().rank)].data());
  };
  return std::make_unique<HostGroup>(place, static_cast<int>(part.size()), several_hosts_, share, timeout_);
}

}  // namespace assay
