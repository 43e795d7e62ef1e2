// Listening, telling workers from strangers, and reading bounded lines.
#include "harness/channel/channel.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/version.h"
#include "harness/record/json_reader.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t stranger_line_bytes = 4096;
constexpr std::size_t worker_line_bytes = 16u << 20;
constexpr std::size_t max_strangers = 32;
constexpr std::size_t max_log = 100;
constexpr auto hello_patience = std::chrono::seconds(10);

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw Error("no random numbers for the channel's token");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Takes as long for a wrong token as for a right one.
bool equal_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

std::string channel_version() { return fmt::format("{} (channel {})", build_info().version, channel_protocol); }

bool LineBuffer::feed(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::string_view part = bytes.substr(0, newline);
    if (text_.size() + part.size() > limit_) return false;
    text_.append(part);
    if (newline == bytes.npos) return true;
    lines.push_back(std::move(text_));
    text_.clear();
    bytes.remove_prefix(newline + 1);
  }
  return true;
}

bool send_line(int fd, const Json& message, double seconds) {
  const std::string line = dump_line(message) + "\n";
  std::string_view rest = line;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd writable{fd, POLLOUT, 0};
    if (::poll(&writable, 1, static_cast<int>(left)) < 0 && errno != EINTR) return false;
  }
  return true;
}

ChannelServer::ChannelServer(bool every_interface) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0) throw Error(fmt::format("no socket for the channel: {}", std::strerror(errno)));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(every_interface ? INADDR_ANY : INADDR_LOOPBACK);
  socklen_t length = sizeof place;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 || ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&place), &length) != 0) {
    const int error = errno;
    ::close(listener_);
    throw Error(fmt::format("the channel cannot listen: {}", std::strerror(error)));
  }
  address_ = fmt::format("{}:{}", every_interface ? this_host() : "127.0.0.1", ntohs(place.sin_port));
  token_ = random_token();
}

ChannelServer::~ChannelServer() {
  close_all();
  ::close(listener_);
}

void ChannelServer::close_all() {
  for (Peer& peer : peers_)
    if (peer.fd >= 0) ::close(peer.fd);
  peers_.clear();
}

void ChannelServer::expect(int size) {
  close_all();
  token_ = random_token();
  size_ = size;
}

std::vector<std::string> ChannelServer::take_log() { return std::exchange(log_, {}); }

void ChannelServer::drop(Peer& peer, const std::string& why) {
  if (log_.size() < max_log) log_.push_back(fmt::format("channel: {}: {}", peer.from, why));
  ::close(peer.fd);
  peer.fd = -1;
}

void ChannelServer::accept_peers() {
  for (;;) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const int fd = ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Peer peer{fd, -1, LineBuffer(stranger_line_bytes), Clock::now(), fmt::format("{}:{}", text, ntohs(from.sin_port))};
    const auto strangers = std::count_if(peers_.begin(), peers_.end(), [](const Peer& p) { return p.rank < 0; });
    // Ranks that have not said hello yet count as strangers too.
    if (static_cast<std::size_t>(strangers) >= max_strangers + static_cast<std::size_t>(size_))
      drop(peer, "too many connections that said no hello");
    else
      peers_.push_back(std::move(peer));
  }
}

std::string ChannelServer::check_hello(const Json& message) const {
  const JsonReader hello(message, "");
  if (hello.text("type") != "hello") return "no hello";
  if (!equal_token(hello.text("token"), token_)) return "wrong token";
  if (hello.text("version") != channel_version())
    return fmt::format("version mismatch: worker on {} is {}, supervisor is {}", hello.text("host", "?"),
                       hello.text("version", "unknown"), channel_version());
  const int rank = hello.small("rank", 0), size = hello.small("size", 0);
  if (size != size_) return fmt::format("world of {} ranks where {} were started", size, size_);
  if (rank >= size_) return fmt::format("rank {} in a world of {}", rank, size_);
  for (const Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank == rank) return fmt::format("a second rank {}", rank);
  return {};
}

void ChannelServer::take_line(Peer& peer, const std::string& line, std::vector<Event>& events) {
  Json message;
  std::string why;
  bool known_token = false;
  try {
    message = parse_untrusted(line);
    const JsonReader reader(message, "");
    if (peer.rank >= 0) {
      events.push_back({Event::Kind::message, peer.rank, std::move(message)});
      return;
    }
    why = check_hello(message);
    known_token = equal_token(reader.text("token"), token_);
  } catch (const std::exception& error) {
    why = fmt::format("bad line: {}", error.what());
  }
  if (peer.rank >= 0) {  // a worker's line that was cut or mixed: the line is lost, the worker is not
    if (log_.size() < max_log) log_.push_back(fmt::format("channel: rank {}: {}", peer.rank, why));
  } else if (why.empty()) {
    peer.rank = JsonReader(message, "").small("rank", 0);
    peer.lines.set_limit(worker_line_bytes);
    events.push_back({Event::Kind::hello, peer.rank, std::move(message)});
  } else {
    // Only who knows the token is told why, and only its refusal is the supervisor's concern.
    if (known_token) {
      const Json refusal = {{"type", "refused"}, {"reason", why}};
      send_line(peer.fd, refusal, 1.0);
      events.push_back({Event::Kind::refused, -1, refusal});
    }
    drop(peer, why);
  }
}

void ChannelServer::read_peer(Peer& peer, std::vector<Event>& events) {
  char block[65536];
  const ssize_t got = ::recv(peer.fd, block, sizeof block, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (peer.rank >= 0) events.push_back({Event::Kind::closed, peer.rank, nullptr});
    ::close(peer.fd);
    peer.fd = -1;
    return;
  }
  std::vector<std::string> lines;
  const bool bounded = peer.lines.feed({block, static_cast<std::size_t>(got)}, lines);
  for (const std::string& line : lines) {
    if (peer.fd < 0) return;
    take_line(peer, line, events);
  }
  if (bounded || peer.fd < 0) return;
  if (peer.rank >= 0) events.push_back({Event::Kind::closed, peer.rank, nullptr});
  drop(peer, "a line beyond the limit");
}

std::vector<ChannelServer::Event> ChannelServer::wait(int timeout_ms, std::vector<pollfd>& others) {
  std::vector<pollfd> fds = others;
  fds.push_back({listener_, POLLIN, 0});
  for (const Peer& peer : peers_) fds.push_back({peer.fd, POLLIN, 0});
  std::vector<Event> events;
  if (::poll(fds.data(), fds.size(), timeout_ms) < 0) {
    for (pollfd& other : others) other.revents = 0;
    return events;
  }
  for (std::size_t i = 0; i < others.size(); ++i) others[i].revents = fds[i].revents;
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (fds[others.size() + 1 + i].revents) read_peer(peers_[i], events);
  for (Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank < 0 && Clock::now() - peer.since > hello_patience) drop(peer, "said no hello");
  std::erase_if(peers_, [](const Peer& peer) { return peer.fd < 0; });
  if (fds[others.size()].revents) accept_peers();
  return events;
}

bool ChannelServer::send(int rank, const Json& message) {
  for (const Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank == rank) return send_line(peer.fd, message, 5.0);
  return false;
}

}  // namespace assay
