// Parts of the memory suite: loops of every instruction set, slices, the chase.
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/team.h"
#include "harness/device/device.h"
#include "suites/memory/arrays.h"
#include "suites/memory/chase.h"
#include "suites/memory/kernels.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace assay::memory {
namespace {

std::vector<const KernelSet*> runnable_sets() {
  std::vector<const KernelSet*> sets{baseline_kernels()};
  if (cpu::instruction_sets().avx2 && avx2_kernels()) sets.push_back(avx2_kernels());
  if (cpu::instruction_sets().avx512f && avx512_kernels()) sets.push_back(avx512_kernels());
  return sets;
}

double right(Op op, std::size_t i) {
  const double x = input(0, i), y = input(1, i);
  switch (op) {
    case Op::write: return written;
    case Op::copy: return x;
    case Op::scale: return factor * x;
    case Op::add: return x + y;
    case Op::triad: return x + factor * y;
    default: return 0;
  }
}

TEST(MemoryKernels, EveryLoopOfEverySetWritesEveryElementAndNoMore) {
  const auto device = make_device(DeviceKind::cpu, 0);
  for (const KernelSet* set : runnable_sets())
    for (const std::size_t n : {8u, 16u, 24u, 32u, 40u, 72u, 1000u, 4096u}) {
      SCOPED_TRACE(fmt::format("{}, {} elements", set->isa, n));
      const Buffer x = device->allocate(n * 8), y = device->allocate(n * 8), out = device->allocate((n + 8) * 8);
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        x.as<double>()[i] = input(0, i);
        y.as<double>()[i] = input(1, i);
        sum += input(0, i);
      }
      EXPECT_EQ(set->plain[static_cast<int>(Op::read)](nullptr, x.as<double>(), nullptr, n), sum);
      for (const Op op : {Op::write, Op::copy, Op::scale, Op::add, Op::triad})
        for (const Kernel* kernels : {set->plain, set->nontemporal}) {
          const Kernel kernel = kernels[static_cast<int>(op)];
          if (!kernel) continue;
          for (std::size_t i = 0; i < n + 8; ++i) out.as<double>()[i] = std::numeric_limits<double>::quiet_NaN();
          kernel(out.as<double>(), x.as<double>(), y.as<double>(), n);
          for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(out.as<double>()[i], right(op, i)) << "element " << i;
          EXPECT_TRUE(std::isnan(out.as<double>()[n])) << "wrote past the end";
        }
    }
}

TEST(MemoryKernels, TheBestSetIsOneThatRunsHere) {
  const auto sets = runnable_sets();
  EXPECT_EQ(&best_kernels(), sets.back());
}

TEST(MemoryArrays, SlicesCoverEveryLineOnce) {
  for (const std::size_t elements :
       {std::size_t{24}, std::size_t{1000 * 8}, std::size_t{1} << 20, (std::size_t{1} << 20) + 8})
    for (const int parts : {1, 2, 3}) {
      std::size_t next = 0;
      for (const Slice& slice : split(elements, parts)) {
        EXPECT_EQ(slice.first, next);
        EXPECT_EQ(slice.first % doubles_per_line, 0u);
        EXPECT_EQ(slice.count % doubles_per_line, 0u);
        EXPECT_GT(slice.count, 0u);
        next += slice.count;
      }
      EXPECT_EQ(next, elements);
    }
}

TEST(MemoryArrays, PageSizeOfABufferIsNamed) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const Buffer small = device->allocate(1 << 16), large = device->allocate(std::size_t{8} << 20);
  const cpu::Team team(1);
  fill_output(small.as<double>(), team, split(small.bytes() / 8, 1));
  fill_output(large.as<double>(), team, split(large.bytes() / 8, 1));
  EXPECT_EQ(page_size_of({&small}).substr(1), "KiB");
  const std::string pages = page_size_of({&large});
  EXPECT_TRUE(pages == "4KiB" || pages == "2MiB" || pages == "mixed") << pages;
  EXPECT_FALSE(numa_policy().empty());
}

TEST(Chase, VisitsEveryLineOnceAndEndsWhereItMust) {
  for (const std::size_t count : {2u, 3u, 64u, 10007u}) {
    std::vector<Line> lines(count);
    link_cycle(lines.data(), count, Rng(1, "chase"));
    EXPECT_EQ(wrong_lines(lines.data(), count), 0u);
    for (const std::uint64_t hops :
         {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{count}, std::uint64_t{3 * count + 13}})
      EXPECT_EQ(chase(lines.data(), hops)->place, hops % count);
  }
}

TEST(Chase, IsRandomAndRepeatable) {
  std::vector<Line> a(1000), b(1000);
  link_cycle(a.data(), a.size(), Rng(1, "chase"));
  link_cycle(b.data(), b.size(), Rng(1, "chase"));
  int neighbours = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].place, b[i].place);
    neighbours += a[i].next == &a[i] + 1;
  }
  EXPECT_LT(neighbours, 20);
}

TEST(Chase, ABrokenCycleIsDetected) {
  std::vector<Line> lines(100);
  link_cycle(lines.data(), lines.size(), Rng(1, "chase"));
  lines[40].place ^= 1;
  EXPECT_GT(wrong_lines(lines.data(), lines.size()), 0u);
  lines[40].place ^= 1;
  lines[7].next = lines[7].next->next;  // skips one line
  EXPECT_GT(wrong_lines(lines.data(), lines.size()), 0u);
}

}  // namespace
}  // namespace assay::memory
