#include "harness/watch/places.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/device/cpu/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace assay::watch {
namespace {

constexpr std::int64_t min_looks = 3;
constexpr double second_pages = 60, more_pages = 300;  // s

// The CPU that the main thread ran on last; field 39 of proc(5)'s stat, whose second may contain blanks and brackets.
std::optional<int> last_cpu(const Root& root, Pid pid) {
  const auto text = root.text(fmt::format("proc/{}/stat", pid));
  const std::size_t end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = assay::words(text->substr(end + 1));  // from the third on
  if (fields.size() < 37) return std::nullopt;
  const auto cpu = to_integer(fields[36]);
  return cpu ? std::optional(static_cast<int>(*cpu)) : std::nullopt;
}

}  // namespace

Places::Places(Root root) : root_(std::move(root)) {
  for (const int node : cpu_list(root_.text("sys/devices/system/node/online").value_or(""))) {
    ++nodes_;
    for (const int cpu : cpu_list(root_.text(fmt::format("sys/devices/system/node/node{}/cpulist", node)).value_or("")))
      node_of_cpu_[cpu] = node;
  }
}

void Places::look(double seconds, const RankInfo& rank) {
  if (!several_nodes()) return;
  const auto cpu = last_cpu(root_, rank.pid);
  const auto node = cpu ? node_of_cpu_.find(*cpu) : node_of_cpu_.end();
  if (node == node_of_cpu_.end()) return;
  const auto [place, fresh] = seen_.try_emplace(rank.pid);
  Seen& seen = place->second;
  if (fresh) seen.rank = rank, seen.began = seconds;
  ++seen.looks[node->second];
  if (seconds - seen.began < seen.pages_after) return;
  seen.pages_after = seen.pages_after < second_pages ? second_pages : seen.pages_after + more_pages;
  count_pages(seen);
}

void Places::count_pages(Seen& seen) {
  const auto text = root_.text(fmt::format("proc/{}/numa_maps", seen.rank.pid));
  if (!text) return;
  std::map<int, double> bytes;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" file=") != line.npos) continue;  // of libraries, which all processes share
    double page = 4096;
    std::map<int, double> pages;
    for (const std::string& word : assay::words(line)) {
      const std::size_t equals = word.find('=');
      if (equals == word.npos) continue;
      const auto count = to_integer(word.substr(equals + 1));
      if (!count) continue;
      if (word.starts_with("kernelpagesize_kB=")) page = 1024.0 * static_cast<double>(*count);
      if (word[0] != 'N') continue;
      if (const auto node = to_integer(word.substr(1, equals - 1)))
        pages[static_cast<int>(*node)] = static_cast<double>(*count);
    }
    for (const auto& [node, count] : pages) bytes[node] += page * count;
  }
  if (!bytes.empty()) seen.bytes = std::move(bytes);
}

std::vector<RankPlace> Places::ranks() const {
  std::vector<RankPlace> all;
  for (const auto& [pid, seen] : seen_) {
    std::int64_t looks = 0;
    for (const auto& [node, count] : seen.looks) looks += count;
    if (looks < min_looks) continue;
    const auto most = std::ranges::max_element(seen.looks, {}, [](const auto& one) { return one.second; });
    RankPlace place{
        seen.rank.rank, most->first, static_cast<double>(most->second) / static_cast<double>(looks), {}, {}};
    if (!seen.rank.gpu_pci.empty()) {
      // -1: the firmware does not say.
      const auto text = root_.text(fmt::format("sys/bus/pci/devices/{}/numa_node", seen.rank.gpu_pci));
      const auto node = text ? to_integer(trim(*text)) : std::nullopt;
      if (node && *node >= 0) place.gpu_node = static_cast<int>(*node);
    }
    double bytes = 0, here = 0;
    for (const auto& [node, size] : seen.bytes) bytes += size, here += node == place.node ? size : 0;
    if (bytes > 0) place.remote = 1 - here / bytes;
    all.push_back(place);
  }
  std::ranges::sort(all, {}, &RankPlace::rank);
  return all;
}

}  // namespace assay::watch
