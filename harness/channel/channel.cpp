// Listening, accepting ranks among strangers, and reading bounded lines.
#include "harness/channel/channel.h"

#include "harness/channel/connect.h"
#include "harness/core/build_id.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/open_files.h"
#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/core/version.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay {

namespace {

constexpr std::size_t stranger_line_bytes = 4096;
constexpr std::size_t worker_line_bytes = 16u << 20;
constexpr std::size_t max_strangers = 128;  // besides the ranks that have not said hello yet
constexpr int accepts_per_round = 64;
constexpr std::size_t other_descriptors = 256;  // for strangers and everything else in this process
constexpr std::size_t max_log = 20;
constexpr auto log_period = std::chrono::minutes(1);
constexpr auto hello_timeout = std::chrono::seconds(10);
constexpr auto crowded_hello_timeout = std::chrono::milliseconds(250);  // while others wait for the place
constexpr std::string_view second_rank = "a second rank";
constexpr auto rest = std::chrono::milliseconds(100);
constexpr char tls_handshake = 22;  // the first byte of a TLS connection: ContentType handshake (RFC 8446, 5.1)
constexpr int max_records_per_round = 4;
constexpr int max_listen_attempts = 8;

// In constant time. For peers in clear: others prove that they know it by TLS.
bool equal_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

bool is_own(const in_addr& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr = address;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool own = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  if (fd >= 0) ::close(fd);
  return own;
}

// Loopback and the addresses of these names of this host, or any address: a name may mean this host only elsewhere, as
// behind address translation, or may be looked up as loopback here.
std::vector<in_addr> own_addresses_of(const std::vector<std::string>& hosts) {
  std::vector<in_addr> own = {{htonl(INADDR_LOOPBACK)}};
  for (const std::string& host : hosts) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {{INADDR_ANY}};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
    for (const addrinfo* place = found; place; place = place->ai_next) {
      const in_addr address = reinterpret_cast<const sockaddr_in*>(place->ai_addr)->sin_addr;
      if (ntohl(address.s_addr) >> 24 == 127 || !is_own(address)) return {{INADDR_ANY}};
      if (std::ranges::find(own, address.s_addr, &in_addr::s_addr) == own.end()) own.push_back(address);
    }
  }
  return own;
}

bool loopback_is_up() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  const bool up = fd >= 0 && ::ioctl(fd, SIOCGIFFLAGS, &loopback) == 0 && (loopback.ifr_flags & IFF_UP);
  if (fd >= 0) ::close(fd);
  return up;
}

}  // namespace

std::string channel_version() {
  return fmt::format("{} (channel {}, build {})", build_info().version, channel_protocol,
                     build_id().empty() ? "unknown" : build_id().substr(0, 12));
}

LineBuffer::Fed LineBuffer::next(std::string_view& bytes, std::string& line) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view part = bytes.substr(0, newline);
  if (text_.size() + part.size() > limit_) return Fed::too_long;
  text_.append(part);
  bytes.remove_prefix(newline == bytes.npos ? bytes.size() : newline + 1);
  if (newline == bytes.npos) return Fed::wants_more;
  line = std::exchange(text_, {});
  return Fed::line;
}

bool LineBuffer::feed(std::string_view bytes, std::vector<std::string>& lines) {
  std::string line;
  for (;;) {
    const Fed fed = next(bytes, line);
    if (fed != Fed::line) return fed == Fed::wants_more;
    lines.push_back(std::move(line));
  }
}

bool send_line(TlsConnection& connection, const Message& message, double seconds) {
  const std::string line = encode(message) + "\n";
  std::string_view rest = line;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (!rest.empty()) {
    const TlsConnection::State state = connection.write(rest);
    if (state == TlsConnection::State::done) continue;
    if (!TlsConnection::waits(state) || !connection.wait(state, until)) return false;
  }
  return true;
}

ChannelServer::ChannelServer() : ChannelServer(Listen{}) {}

ChannelServer::ChannelServer(const Listen& where)
    : guests_allowed_(where.guests),
      fixed_token_(!where.token.empty()),
      token_(fixed_token_ ? where.token : random_token()) {
  const bool no_network = !where.other_hosts && where.port == 0 && !loopback_is_up();
  for (int attempt = 1; listeners_.empty(); ++attempt) {
    try {
      no_network ? listen_without_network() : listen_at(where);
    } catch (const Error&) {
      for (const int listener : std::exchange(listeners_, {})) ::close(listener);
      // A port that was free at one address may be taken at the next.
      if (where.port > 0 || attempt == max_listen_attempts) throw;
    }
  }
  spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void ChannelServer::add_listener(const sockaddr* place, socklen_t length, bool reuse) {
  const int fd = ::socket(place->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw Error(fmt::format("no socket for the channel: {}", std::strerror(errno)));
  listeners_.push_back(fd);
  // A port given by the user is used again by the next run.
  const int on = 1;
  if (reuse) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, place, length) == 0 && ::listen(fd, 1024) == 0) return;
  const int error = errno;
  const int port = place->sa_family == AF_INET ? ntohs(reinterpret_cast<const sockaddr_in*>(place)->sin_port) : 0;
  throw Error(fmt::format("the channel cannot listen{}: {}", port > 0 ? fmt::format(" at port {}", port) : "",
                          std::strerror(error)));
}

void ChannelServer::listen_without_network() {
  address_ = "@assay-" + random_token();
  const auto [place, length] = abstract_socket(address_);
  add_listener(reinterpret_cast<const sockaddr*>(&place), length, false);
}

void ChannelServer::listen_at(const Listen& where) {
  std::vector<std::string> hosts = split_commas(where.hosts);
  if (where.hosts.empty()) hosts = {where.other_hosts ? this_host() : "127.0.0.1"};
  std::vector<in_addr> addresses = {{htonl(INADDR_LOOPBACK)}};
  if (where.other_hosts) addresses = own_addresses_of(hosts);
  std::uint16_t port = htons(static_cast<std::uint16_t>(where.port));
  for (const in_addr& address : addresses) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr = address;
    place.sin_port = port;
    add_listener(reinterpret_cast<const sockaddr*>(&place), sizeof place, where.port > 0);
    socklen_t length = sizeof place;
    if (::getsockname(listeners_.back(), reinterpret_cast<sockaddr*>(&place), &length) != 0)
      throw Error(fmt::format("the channel cannot listen: {}", std::strerror(errno)));
    port = place.sin_port;
  }
  for (const std::string& host : hosts)
    address_ += fmt::format("{}{}:{}", address_.empty() ? "" : ",", host, ntohs(port));
}

ChannelServer::~ChannelServer() {
  close_all();
  for (const int listener : listeners_) ::close(listener);
  if (spare_ >= 0) ::close(spare_);
}

void ChannelServer::close_all() {
  for (Peer& peer : peers_)
    if (peer.fd >= 0) ::close(peer.fd);
  peers_.clear();
}

void ChannelServer::expect(int size) {
  close_all();
  if (!fixed_token_) token_ = random_token();
  size_ = size;
  guests_ = 0;
  rest_until_ = {};
  reserve_open_files(static_cast<std::size_t>(size) + other_descriptors);  // one per rank
}

std::vector<std::string> ChannelServer::drain_log() {
  if (Clock::now() - log_since_ > log_period) {
    if (suppressed_ > 0)
      log_.push_back(fmt::format("channel: {} more connections or lines like these were refused", suppressed_));
    else
      logged_ = 0;  // a quiet minute: log again
    suppressed_ = 0;
    log_since_ = Clock::now();
  }
  return std::exchange(log_, {});
}

void ChannelServer::log(std::string line) {
  if (logged_ >= max_log) {
    ++suppressed_;
    return;
  }
  if (logged_++ == 0) log_since_ = Clock::now();
  log_.push_back(std::move(line));
}

void ChannelServer::drop(Peer& peer, const std::string& why) {
  log(fmt::format("channel: {}: {}", peer.from, why));
  ::close(peer.fd);
  peer.fd = -1;
}

bool ChannelServer::expecting() const {
  return std::ranges::count_if(
             peers_, [this](const Peer& peer) { return peer.fd >= 0 && peer.rank >= 0 && peer.rank < size_; }) < size_;
}

bool ChannelServer::make_room() {
  std::size_t strangers = 0;
  Peer* oldest = nullptr;
  for (Peer& peer : peers_) {
    if (peer.fd < 0 || peer.rank >= 0 || (peer.tls && peer.tls->token_shown())) continue;
    ++strangers;
    if (!oldest || peer.since < oldest->since) oldest = &peer;
  }
  // Ranks that have not said hello yet count as strangers too.
  if (strangers < max_strangers + static_cast<std::size_t>(size_)) return true;
  // A worker says hello as soon as it is connected, so a silent connection is no worker.
  if (Clock::now() - oldest->since < crowded_hello_timeout) return false;
  drop(*oldest, "said no hello while others waited");
  return true;
}

void ChannelServer::accept_peers(int listener) {
  for (int i = 0; i < accepts_per_round && make_room(); ++i) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // A connection left in the queue would wake every wait: accept and close it with the spare descriptor.
      const std::string why = std::strerror(errno);
      if (spare_ >= 0) ::close(spare_);
      if (const int refused = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); refused >= 0)
        ::close(refused);
      spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      log(fmt::format("channel: a connection could not be accepted: {}", why));
      rest_until_ = Clock::now() + rest;
      return;
    }
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch_connection(fd);
    peers_.push_back({fd, -1, LineBuffer(stranger_line_bytes), Clock::now(), Clock::now(),
                      fmt::format("{}:{}", text, ntohs(from.sin_port))});
  }
  // Connections still in the queue wait for a place.
  if (!make_room()) rest_until_ = Clock::now() + rest;
}

std::string ChannelServer::check_hello(const message::Hello& hello) const {
  const std::string who = fmt::format("{} on {}", one_line(hello.role), one_line(hello.host));
  // Before the version: builds for two architectures never have the same one.
  if (const std::string& other = hello.architecture; !other.empty() && other != machine_architecture())
    return fmt::format("architecture mismatch: {} is {}, supervisor is {}", who, one_line(other),
                       machine_architecture());
  if (hello.version != channel_version())
    return fmt::format("version mismatch: {} is {}, supervisor is {}", who, one_line(hello.version), channel_version());
  if (hello.role == "guest") return guests_allowed_ ? "" : "no guest is expected";
  if (hello.size != size_) return fmt::format("world of {} ranks where {} were started", hello.size, size_);
  if (hello.rank >= size_) return fmt::format("rank {} in a world of {}", hello.rank, size_);
  for (const Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank == hello.rank) return fmt::format("{} {}", second_rank, hello.rank);
  return {};
}

void ChannelServer::handle_line(Peer& peer, const std::string& line, std::vector<Event>& events) {
  try {
    if (peer.rank < 0) return handle_first_line(peer, line, events);
    events.push_back({Event::Kind::message, peer.rank, decode(line)});
  } catch (const std::exception& error) {
    const std::string why = fmt::format("bad line: {}", reason_of(error));
    if (peer.rank < 0) return drop(peer, why);
    // A worker's line that was cut or mixed with another: only the line is lost.
    log(fmt::format("channel: rank {}: {}", peer.rank, why));
  }
}

void ChannelServer::handle_first_line(Peer& peer, const std::string& line, std::vector<Event>& events) {
  std::optional<message::Hello> hello = decode_hello(line);
  if (!hello) return drop(peer, "no hello");
  const std::string why = check_hello(*hello);
  if (!why.empty()) {
    message::Refused refusal{why, hello->rank};
    send_line(*peer.tls, refusal, 1.0);
    return refuse(peer, std::move(refusal), events);
  }
  peer.rank = hello->role == "guest" ? size_ + guests_++ : hello->rank;
  peer.lines.set_limit(worker_line_bytes);
  events.push_back({Event::Kind::hello, peer.rank, std::move(*hello)});
}

void ChannelServer::refuse_in_clear(Peer& peer, std::vector<Event>& events) {
  char block[stranger_line_bytes];
  const ssize_t got = ::recv(peer.fd, block, sizeof block, 0);
  std::string_view bytes(block, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  std::string line;
  const LineBuffer::Fed fed = peer.lines.next(bytes, line);
  if (got > 0 && fed == LineBuffer::Fed::wants_more) return;
  std::optional<message::Hello> hello;
  try {
    if (fed == LineBuffer::Fed::line) hello = decode_hello(line);
  } catch (const Error&) {
    // It is no message.
  }
  if (!hello || !equal_token(hello->token, token_)) return drop(peer, "neither TLS nor the hello of an older build");
  const std::string why = check_hello(*hello);
  message::Refused refusal{why.empty() ? "its messages are not encrypted" : why, hello->rank};
  const std::string answer = encode(refusal) + "\n";
  (void)!::send(peer.fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  refuse(peer, std::move(refusal), events);
}

void ChannelServer::refuse(Peer& peer, message::Refused refusal, std::vector<Event>& events) {
  drop(peer, refusal.reason);
  // The supervisor hears of it only while a rank is missing and its place is free; else the hello was a second one.
  if (expecting() && !refusal.reason.starts_with(second_rank))
    events.push_back({Event::Kind::refused, -1, std::move(refusal)});
}

void ChannelServer::lost(Peer& peer, std::vector<Event>& events) {
  if (peer.rank >= 0) events.push_back({Event::Kind::closed, peer.rank, {}});
  ::close(peer.fd);
  peer.fd = -1;
}

bool ChannelServer::secure(Peer& peer, std::vector<Event>& events) {
  if (peer.secure) return true;
  if (!peer.tls) {
    char first = 0;
    const ssize_t got = ::recv(peer.fd, &first, 1, MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) return lost(peer, events), false;
    if (first != tls_handshake) return refuse_in_clear(peer, events), false;
    peer.tls = std::make_unique<TlsConnection>(TlsConnection::End::server, peer.fd, token_);
  }
  const TlsConnection::State state = peer.tls->shake_hands();
  peer.secure = state == TlsConnection::State::done;
  if (!peer.secure && !TlsConnection::waits(state))
    drop(peer, fmt::format("no TLS with this run's token: {}", peer.tls->why()));
  return peer.secure;
}

void ChannelServer::read_peer(Peer& peer, std::vector<Event>& events) {
  if (!secure(peer, events)) return;
  // A peer that never stops sending must not keep the others waiting.
  for (int records = 0; peer.fd >= 0 && records < max_records_per_round; ++records) {
    char block[16384];
    std::size_t got = 0;
    const TlsConnection::State state = peer.tls->read(block, sizeof block, got);
    if (TlsConnection::waits(state)) return;
    if (state == TlsConnection::State::failed) log(fmt::format("channel: {}: {}", peer.from, peer.tls->why()));
    if (state != TlsConnection::State::done) return lost(peer, events);
    peer.heard = Clock::now();
    read_lines(peer, {block, got}, events);
  }
}

void ChannelServer::read_lines(Peer& peer, std::string_view bytes, std::vector<Event>& events) {
  std::string line;
  while (peer.fd >= 0) {
    const LineBuffer::Fed fed = peer.lines.next(bytes, line);
    if (fed == LineBuffer::Fed::wants_more) return;
    if (fed == LineBuffer::Fed::line) {
      handle_line(peer, line, events);
      continue;
    }
    if (peer.rank >= 0) events.push_back({Event::Kind::closed, peer.rank, {}});
    drop(peer, "a line beyond the limit");
  }
}

std::vector<ChannelServer::Event> ChannelServer::wait(int timeout_ms, std::vector<pollfd>& others) {
  // Time when nobody listened is not silence.
  const bool was_away = Clock::now() - waited_ > heartbeat_period;
  // While a rank is missing, any connection may be it: then only the queue rests.
  const bool resting = Clock::now() < rest_until_, expected = expecting();
  std::vector<pollfd> fds = others;
  for (const int listener : listeners_) fds.push_back({resting ? -1 : listener, POLLIN, 0});
  for (const Peer& peer : peers_) fds.push_back({resting && !expected && peer.rank < 0 ? -1 : peer.fd, POLLIN, 0});
  if (resting && expected) timeout_ms = std::min(timeout_ms, static_cast<int>(rest.count()));
  std::vector<Event> events;
  if (::poll(fds.data(), fds.size(), timeout_ms) < 0) {
    for (pollfd& other : others) other.revents = 0;
    return events;
  }
  for (std::size_t i = 0; i < others.size(); ++i) others[i].revents = fds[i].revents;
  waited_ = Clock::now();
  const auto came = [&](std::size_t listener) { return fds[others.size() + listener].revents != 0; };
  bool strangers_came = false;
  for (std::size_t i = 0; i < listeners_.size(); ++i) strangers_came |= came(i);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!fds[others.size() + listeners_.size() + i].revents) continue;
    strangers_came |= peers_[i].rank < 0;
    read_peer(peers_[i], events);
  }
  for (Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank < 0 && Clock::now() - peer.since > hello_timeout) drop(peer, "said no hello");
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (came(i)) accept_peers(listeners_[i]);
  std::erase_if(peers_, [](const Peer& peer) { return peer.fd < 0; });
  if (was_away)
    for (Peer& peer : peers_) peer.heard = waited_;
  if (strangers_came && !expecting()) rest_until_ = Clock::now() + rest;
  return events;
}

void ChannelServer::add_fds(std::vector<pollfd>& fds) const {
  if (Clock::now() >= rest_until_)
    for (const int listener : listeners_) fds.push_back({listener, POLLIN, 0});
  for (const Peer& peer : peers_)
    if (peer.fd >= 0 && (peer.rank >= 0 || Clock::now() >= rest_until_)) fds.push_back({peer.fd, POLLIN, 0});
}

void ChannelServer::disconnect(int rank) {
  for (Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank == rank) ::close(std::exchange(peer.fd, -1));
  std::erase_if(peers_, [](const Peer& peer) { return peer.fd < 0; });
}

std::vector<int> ChannelServer::silent_peers(double seconds) const {
  std::vector<int> silent;
  for (const Peer& peer : peers_)
    if (peer.rank >= 0 && std::chrono::duration<double>(waited_ - peer.heard).count() > seconds)
      silent.push_back(peer.rank);
  return silent;
}

bool ChannelServer::send(int rank, const Message& message) {
  for (const Peer& peer : peers_)
    if (peer.fd >= 0 && peer.rank == rank) return send_line(*peer.tls, message, 5.0);
  return false;
}

}  // namespace assay
