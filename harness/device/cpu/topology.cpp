// Topology from hwloc; page sizes from sysfs.
#include "harness/device/cpu/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace assay::cpu {

namespace fs = std::filesystem;

namespace {

// Assumed if a (virtual) machine hides its caches: more than most cores' share, so buffers sized by it exceed the
// cache.
constexpr std::uint64_t unknown_cache_bytes = std::uint64_t{32} << 20;

std::vector<int> cpus_in(hwloc_const_cpuset_t set) {
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

const char* type_of(hwloc_obj_cache_type_t type) {
  switch (type) {
    case HWLOC_OBJ_CACHE_DATA: return "data";
    case HWLOC_OBJ_CACHE_INSTRUCTION: return "instruction";
    case HWLOC_OBJ_CACHE_UNIFIED: break;
  }
  return "unified";
}

int first_node(hwloc_obj_t object) {
  const int node = object->nodeset ? hwloc_bitmap_first(object->nodeset) : -1;
  return std::max(node, 0);
}

void read_hwloc(Topology& topology) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return;
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> tree(raw, hwloc_topology_destroy);
  if (hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 || hwloc_topology_load(raw) != 0)
    return;

  topology.packages = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE));
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_CORE, core));) {
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(raw, HWLOC_OBJ_PACKAGE, core);
    topology.cores.push_back(
        {cpus_in(core->cpuset), package ? static_cast<int>(package->logical_index) : 0, first_node(core)});
  }
  if (topology.cores.empty())  // the kernel reports no cores: treat each CPU as one
    for (hwloc_obj_t pu = nullptr; (pu = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, pu));)
      topology.cores.push_back({cpus_in(pu->cpuset), 0, first_node(pu)});
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE})
    for (hwloc_obj_t cache = nullptr; (cache = hwloc_get_next_obj_by_type(raw, type, cache));)
      topology.caches.push_back({static_cast<int>(cache->attr->cache.depth), type_of(cache->attr->cache.type),
                                 cache->attr->cache.size, static_cast<int>(cache->attr->cache.linesize),
                                 cpus_in(cache->cpuset)});
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_NUMANODE, node));)
    topology.numa_nodes.push_back(
        {static_cast<int>(node->os_index), node->attr->numanode.local_memory, cpus_in(node->cpuset)});
}

std::string word_in(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// Caches are as large as those of the machine that $ASSAY_ROOT describes, if it describes them: so one machine can test
// what another's sizes do. CPUs and their places remain this machine's.
void read_described_caches(Topology& topology) {
  const char* const root = std::getenv("ASSAY_ROOT");
  if (!root || !*root) return;
  std::error_code none;
  for (Cache& cache : topology.caches) {
    const fs::path cpu = fs::path(root) / "sys/devices/system/cpu" / ("cpu" + std::to_string(cache.cpus.front()));
    for (const auto& index : fs::directory_iterator(cpu / "cache", none)) {
      std::string type = word_in(index.path() / "type");
      std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
      const std::uint64_t bytes = cache_size(word_in(index.path() / "size"));
      if (word_in(index.path() / "level") == std::to_string(cache.level) && type == cache.type && bytes > 0)
        cache.bytes = bytes;
    }
  }
}

void read_pages(Topology& topology) {
  std::ifstream enabled("/sys/kernel/mm/transparent_hugepage/enabled");
  for (std::string word; enabled >> word;)
    if (word.size() > 2 && word.front() == '[') topology.transparent_huge_pages = word.substr(1, word.size() - 2);
}

}  // namespace

std::uint64_t cache_size(std::string_view text) {
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return 0;
  switch (text.back()) {
    case 'K': return number << 10;
    case 'M': return number << 20;
    case 'G': return number << 30;
    default: return number;
  }
}

std::uint64_t Topology::last_level_cache_bytes(const std::vector<int>& cpus) const {
  int last = 0;
  for (const Cache& cache : caches) last = std::max(last, cache.level);
  std::uint64_t bytes = 0;
  for (const Cache& cache : caches) {
    if (cache.level != last || cache.type == "instruction") continue;
    const bool reached =
        std::ranges::any_of(cache.cpus, [&](int cpu) { return std::ranges::find(cpus, cpu) != cpus.end(); });
    if (reached) bytes += cache.bytes;
  }
  return bytes > 0 ? bytes : unknown_cache_bytes;
}

std::uint64_t Topology::cache_bytes(int level, int cpu) const {
  for (const Cache& cache : caches)
    if (cache.level == level && cache.type != "instruction" && std::ranges::find(cache.cpus, cpu) != cache.cpus.end())
      return cache.bytes;
  return 0;
}

const Topology& topology() {
  static const Topology known = [] {
    Topology found;
    read_hwloc(found);
    read_described_caches(found);
    read_pages(found);
    return found;
  }();
  return known;
}

}  // namespace assay::cpu
