// Parses NCCL's log, in the formats of NCCL 2.18 to 2.30.
#include "harness/comm/nccl_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace assay {

namespace {

// Removes and returns the text before the first of `stops`.
std::string_view read_until(std::string_view& text, std::string_view stops) {
  const std::size_t end = std::min(text.find_first_of(stops), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<int> read_int(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool skip(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The text after `word`; nothing if it does not occur.
std::optional<std::string_view> after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return std::nullopt;
  return text.substr(at + word.size());
}

// "NET/IB/1(2)/GDRDMA/Shared" -> "NET/IB/GDRDMA": drops device numbers and whether buffers are shared.
std::string transport_of(std::string_view via) {
  std::string kept;
  while (!via.empty()) {
    const std::string_view part = read_until(via, "/");
    skip(via, "/");
    if (part.empty() || (part[0] >= '0' && part[0] <= '9') || part == "Shared") continue;
    kept += (kept.empty() ? "" : "/") + std::string(part);
  }
  return kept;
}

// "00/0 : 0[0] -> 1[1] [send] via NET/Socket/0 comm 0x55d0 nRanks 02", "02 : 3[3] -> 0[0] via SHM/direct/direct".
std::optional<NcclLink> link_from(std::string_view text) {
  NcclLink link;
  const auto ranks = after(text, " : ");
  if (!ranks) return std::nullopt;
  std::string_view rest = *ranks;
  const auto from = read_int(rest);
  if (!from || !skip(rest, "[")) return std::nullopt;
  read_until(rest, "]");
  if (!skip(rest, "] -> ")) return std::nullopt;
  const auto to = read_int(rest);
  if (!to || !skip(rest, "[")) return std::nullopt;
  const auto via = after(rest, " via ");
  if (!via) return std::nullopt;
  std::string_view word = *via;
  link = {*from, *to, transport_of(read_until(word, " \r"))};
  if (link.via.empty()) return std::nullopt;
  return link;
}

// Before 2.24 NCCL logged algorithms and protocols as numbers.
template <std::size_t n>
std::string named(std::string_view word, const std::array<std::string_view, n>& names) {
  std::string_view rest = word;
  const auto number = read_int(rest);
  if (!number || !rest.empty() || *number < 0 || static_cast<std::size_t>(*number) >= n) return std::string(word);
  return std::string(names[static_cast<std::size_t>(*number)]);
}

// "AllReduce: 4194304 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..7}", "... -> Algo 1 proto 2 time 25.1",
// "AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_RSxLDMC_AGxSTMC nchannels 16".
std::string choice_from(std::string_view text) {
  static constexpr std::array<std::string_view, 7> algorithms{
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLSTREE", "PAT"};
  static constexpr std::array<std::string_view, 3> protocols{"LL", "LL128", "SIMPLE"};
  if (auto kernel = after(text, " Bytes -> Kernel ")) return "symmetric/" + std::string(read_until(*kernel, " \r"));
  auto rest = after(text, " Bytes -> Algo ");
  if (!rest) return {};
  const std::string algorithm = named(read_until(*rest, " \r"), algorithms);
  if (!skip(*rest, " proto ")) return {};
  return algorithm + "/" + named(read_until(*rest, " \r"), protocols);
}

}  // namespace

void NcclLog::add(std::string_view text) {
  constexpr std::size_t longest = 1 << 16;  // incomplete line
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    rest_.append(text.substr(0, newline));
    if (newline == text.npos) {
      if (rest_.size() > longest) rest_.clear();
      return;
    }
    read_line(rest_);
    rest_.clear();
    text.remove_prefix(newline + 1);
  }
}

void NcclLog::read_line(std::string_view line) {
  if (const auto warning = after(line, "NCCL WARN ")) {
    warning_ = std::string(*warning);
    while (!warning_.empty() && (warning_.back() == '\r' || warning_.back() == ' ')) warning_.pop_back();
    return;
  }
  const auto info = after(line, "NCCL INFO ");
  if (!info) return;
  std::string_view text = *info;
  if (skip(text, "Channel ")) {
    if (const auto link = link_from(text)) links_.insert(*link);
  } else if (const std::string choice = choice_from(text); !choice.empty()) {
    choice_ = choice;
  }
}

std::string NcclLog::transports() const {
  std::set<std::string> names;
  for (const NcclLink& link : links_) names.insert(link.via);
  return fmt::format("{}", fmt::join(names, ", "));
}

NcclLogFile open_nccl_log(const std::string& descriptors) {
  NcclLogFile log;
  for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"})
    if (std::getenv(name)) {
      log.why_not = fmt::format("{} is set, so NCCL's log is the user's", name);
      return log;
    }
  log.fd = ::memfd_create("assay-nccl-log", MFD_CLOEXEC);
  log.path = fmt::format("{}/{}", descriptors, log.fd);
  const int opened = log.fd < 0 ? -1 : ::open(log.path.c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) {
    log.why_not = fmt::format("NCCL cannot log to {}: {}", log.fd < 0 ? "memory" : log.path, std::strerror(errno));
    if (log.fd >= 0) ::close(log.fd);
    log.fd = -1;
    return log;
  }
  ::close(opened);
  return log;
}

std::vector<std::string> socket_remarks(const std::set<NcclLink>& links, const std::vector<std::uint64_t>& host_of,
                                        bool infiniband) {
  std::optional<NcclLink> inside, between;
  for (const NcclLink& link : links) {
    if (!link.via.starts_with("NET/Socket")) continue;
    const auto known = [&](int rank) { return rank >= 0 && static_cast<std::size_t>(rank) < host_of.size(); };
    if (!known(link.from) || !known(link.to)) continue;
    const bool one_host = host_of[static_cast<std::size_t>(link.from)] == host_of[static_cast<std::size_t>(link.to)];
    std::optional<NcclLink>& first = one_host ? inside : between;
    if (!first) first = link;
  }
  std::vector<std::string> remarks;
  if (inside)
    remarks.push_back(
        fmt::format("NCCL uses a socket between GPUs of one host (rank {} to {}): check that peer access and shared "
                    "memory are allowed (NCCL_P2P_DISABLE, NCCL_SHM_DISABLE unset, /dev/shm large enough, ranks in one "
                    "container with one hostname)",
                    inside->from, inside->to));
  if (between && infiniband)
    remarks.push_back(
        fmt::format("NCCL uses a socket between hosts that have InfiniBand (rank {} to {}): check that NCCL_IB_DISABLE "
                    "is unset, NCCL_IB_HCA names a port that is up, and libibverbs is in the container",
                    between->from, between->to));
  return remarks;
}

}  // namespace assay
