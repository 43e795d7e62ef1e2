#include "workloads/nn/parameter_layout.h"

#include "workloads/parallel/shards.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace assay::nn {

namespace {

// The order of parameters in each half: as they become ready. With zero > 0 whole buckets, within which the order does
// not depend on the program.
std::vector<std::size_t> order_of(std::span<const ParameterSpec> specs, std::span<const std::size_t> ready,
                                  bool by_block) {
  std::vector<std::size_t> when(ready.begin(), ready.end()), order(specs.size());
  if (by_block) {
    std::map<std::string_view, std::size_t> of_block;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      std::size_t& last = of_block[block_of(specs[i].name)];
      last = std::max(last, ready[i]);
    }
    for (std::size_t i = 0; i < specs.size(); ++i) when[i] = specs[i].decay ? of_block[block_of(specs[i].name)] : 0;
  }
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return when[a] < when[b]; });
  return order;
}

}  // namespace

std::string_view block_of(std::string_view name) {
  std::size_t end = name.find('.');
  for (std::size_t begin = end; begin != std::string_view::npos;) {
    const std::size_t next = name.find('.', begin + 1);
    const std::string_view part = name.substr(begin + 1, next - begin - 1);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos) end = next;
    begin = next;
  }
  return name.substr(0, end);
}

Range ParameterLayout::held(Array array, std::size_t parameter, std::int64_t length) const {
  const Held& whole = bucket_of(parameter).in(array);
  const std::int64_t start = begin[parameter];
  const std::int64_t from = std::max(start, whole.begin), to = std::min(start + length, whole.end);
  return {parameter, from - start, std::max<std::int64_t>(0, to - from)};
}

ParameterLayout lay_out(std::span<const ParameterSpec> specs, std::span<const std::size_t> ready, const Cut& cut,
                        std::span<const std::int64_t> room) {
  constexpr std::int64_t line = parallel::slice_alignment;
  const bool by_block = cut.layout.divides();
  const std::int64_t ranks = by_block ? cut.layout.dp : 1;
  ParameterLayout layout;
  layout.begin.resize(specs.size());
  layout.bucket.resize(specs.size());
  const std::vector<std::size_t> order = order_of(specs, ready, by_block);
  for (const bool decay : {true, false}) {
    Bucket bucket{.begin = layout.count, .decay = decay};
    const auto close = [&] {
      if (layout.count == bucket.begin) return;
      bucket.slice = parallel::slice_of(layout.count - bucket.begin, ranks);
      bucket.end = layout.count = bucket.begin + ranks * bucket.slice;
      layout.buckets.push_back(bucket);
      bucket = {.begin = layout.count, .decay = decay};
    };
    std::string_view block;
    for (const std::size_t index : order) {
      if (specs[index].decay != decay) continue;
      if (by_block && decay && block_of(specs[index].name) != block) close();
      block = block_of(specs[index].name);
      layout.begin[index] = layout.count;
      const std::int64_t elements = specs[index].count() + (room.empty() ? 0 : room[index]);
      layout.count += (elements + line - 1) / line * line;
      bucket.ready = std::max(bucket.ready, ready[index]);
      if (!by_block && layout.count - bucket.begin >= cut.bucket_elements) close();
    }
    close();
    if (decay) layout.decayed = layout.count;
  }
  std::ranges::stable_sort(layout.buckets, {}, &Bucket::ready);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    Bucket& bucket = layout.buckets[b];
    bucket.held.fill({bucket.begin, bucket.end, bucket.begin});
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (layout.begin[i] >= bucket.begin && layout.begin[i] < bucket.end) layout.bucket[i] = b;
  }
  layout.elements.fill(layout.count);
  return layout;
}

void divide(ParameterLayout& parameters, const parallel::Layout& layout, int rank, std::span<const ReadWhole> read) {
  if (!layout.divides()) return;
  parameters.elements = {};
  for (std::size_t b = 0; b < parameters.buckets.size(); ++b) {
    Bucket& bucket = parameters.buckets[b];
    const auto hold = [&](Array array, bool whole) {
      std::int64_t& elements = parameters.elements[static_cast<std::size_t>(array)];
      const std::int64_t begin = whole ? bucket.begin : bucket.own(rank);
      bucket.in(array) = {begin, whole ? bucket.end : begin + bucket.slice, elements};
      elements += bucket.in(array).count();
    };
    // Vectors are small, and read everywhere.
    const bool weights = layout.zero < 3 || !bucket.decay;
    hold(Array::masters, weights && read[b].masters);
    if (read[b].copies)
      hold(Array::copies, weights);
    else
      bucket.in(Array::copies) = {};
    hold(Array::gradients, layout.zero < 2);
    hold(Array::moments, false);
  }
}

std::vector<RankRange> ranges_by_rank(const ParameterLayout& parameters, std::span<const ParameterSpec> specs,
                                      std::int64_t ranks) {
  std::vector<RankRange> ranges;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Bucket& bucket = parameters.bucket_of(i);
    const std::int64_t begin = parameters.begin[i], end = begin + specs[i].count();
    for (std::int64_t rank = bucket.divided() ? (begin - bucket.begin) / bucket.slice : 0; rank < ranks; ++rank) {
      const std::int64_t own = bucket.own(static_cast<int>(rank));
      const std::int64_t from = std::max(begin, own), to = std::min(end, own + bucket.slice);
      if (from >= to) break;
      ranges.push_back({{i, from - begin, to - from}, static_cast<int>(rank)});
      if (!bucket.divided()) break;
    }
  }
  return ranges;
}

}  // namespace assay::nn
