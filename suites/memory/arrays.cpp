#include "suites/memory/arrays.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <limits>
#include <set>

namespace assay::memory {

namespace {

struct Pages {
  std::uint64_t resident = 0;
  std::uint64_t huge = 0;         // in transparent huge pages
  std::uint64_t kernel_page = 0;  // page size of the mapping
};

// The mapping that contains `address`; all zero if there is none.
Pages pages_at(std::uintptr_t address) {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  Pages found;
  bool inside = false;
  while (std::getline(smaps, line)) {
    std::uintptr_t from = 0, to = 0;
    std::uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      if (inside) break;
      inside = from <= address && address < to;
    } else if (inside) {
      if (std::sscanf(line.c_str(), "Rss: %" SCNu64, &kib) == 1) found.resident = kib * 1024;
      if (std::sscanf(line.c_str(), "AnonHugePages: %" SCNu64, &kib) == 1) found.huge = kib * 1024;
      if (std::sscanf(line.c_str(), "KernelPageSize: %" SCNu64, &kib) == 1) found.kernel_page = kib * 1024;
    }
  }
  return found;
}

std::string size_word(std::uint64_t bytes) {
  if (bytes % (1u << 30) == 0) return fmt::format("{}GiB", bytes >> 30);
  if (bytes % (1u << 20) == 0) return fmt::format("{}MiB", bytes >> 20);
  return fmt::format("{}KiB", bytes >> 10);
}

}  // namespace

std::vector<Slice> split(std::size_t elements, int parts) {
  constexpr std::size_t page = 4096 / sizeof(double);
  const auto n = static_cast<std::size_t>(parts);
  const std::size_t unit = elements >= n * page * 16 ? page : doubles_per_line;
  const std::size_t units = elements / unit;
  std::vector<Slice> slices(n);
  for (std::size_t i = 0; i < n; ++i) {
    slices[i].first = units * i / n * unit;
    slices[i].count = units * (i + 1) / n * unit - slices[i].first;
  }
  slices.back().count = elements - slices.back().first;
  return slices;
}

void fill_input(double* data, int array, const cpu::Team& team, const std::vector<Slice>& slices) {
  team.run([&](int thread) {
    const Slice own = slices[static_cast<std::size_t>(thread)];
    for (std::size_t i = own.first; i < own.first + own.count; ++i) data[i] = input(array, i);
  });
}

void fill_output(double* data, const cpu::Team& team, const std::vector<Slice>& slices) {
  team.run([&](int thread) {
    const Slice own = slices[static_cast<std::size_t>(thread)];
    for (std::size_t i = own.first; i < own.first + own.count; ++i) data[i] = std::numeric_limits<double>::quiet_NaN();
  });
}

std::string page_size_of(const std::vector<const Buffer*>& buffers) {
  std::set<std::string> sizes;
  for (const Buffer* buffer : buffers) {
    const Pages pages = pages_at(reinterpret_cast<std::uintptr_t>(buffer->data()));
    if (pages.kernel_page == 0) return "unknown";
    // A mapping ends a little beyond the buffer, so allow a small rest of normal pages.
    if (pages.huge == 0)
      sizes.insert(size_word(pages.kernel_page));
    else
      sizes.insert(pages.huge * 10 >= pages.resident * 9 ? "2MiB" : "mixed");
  }
  return sizes.size() == 1 ? *sizes.begin() : "mixed";
}

std::string numa_policy() {
  int mode = 0;
  // libnuma's numbers (linux/mempolicy.h); flags above the low byte are ignored.
  if (syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) != 0) return "first_touch";
  switch (mode & 0xff) {
    case 1: return "preferred";
    case 2: return "bind";
    case 3: return "interleave";
    default: return "first_touch";
  }
}

}  // namespace assay::memory
