#include "workloads/planning/serving.h"

#include "workloads/planning/weights.h"

#include "harness/core/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::planning {

namespace {

using architecture::Architecture;
using architecture::Split;
using architecture::Weight;

double shared(std::int64_t size, std::int64_t ranks) { return std::ceil(real(size) / real(ranks)); }

// Bits of matrices and of the rest, which formats below 16 bits leave in 16.
struct Bits {
  double matrices = 16, rest = 16;
};

Bits bits_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::f32: return {32, 32};
    case WeightFormat::fp8:
    case WeightFormat::int8: return {8, 16};
    case WeightFormat::int4: return {4 + 20.0 / 128, 16};
    case WeightFormat::nf4: return {nf4_bits, 16};
    default: return {};
  }
}

double weight_bytes(const Architecture& model, const Serving& serving, const std::vector<Weight>& weights) {
  const Bits bits = bits_of(serving.weights);
  double sum = 0;
  for (const Weight& weight : weights) {
    const double each = serving.weights == WeightFormat::as_stored ? model.stored_bits(weight, 16)
                        : weight.linear()                          ? bits.matrices
                                                                   : bits.rest;
    const std::int64_t parts = weight.split == Split::none ? 1 : serving.tp;
    const double bias =
        weight.bias ? shared(weight.out, weight.split == Split::outputs ? serving.tp : 1) * bits.rest : 0;
    sum += real(weight.copies) * (shared(weight.in * weight.out, parts) * each + bias) / 8;
  }
  return sum;
}

double cache_bytes_of_element(CacheFormat format) {
  if (format == CacheFormat::f32) return 4;
  return format == CacheFormat::fp8 || format == CacheFormat::int8 ? 1 : 2;
}

double cache_bytes(const Architecture& model, const Serving& serving) {
  double elements = 0;
  for (const std::size_t kind : model.order) {
    const architecture::Attention& attention = model.kinds[kind].attention;
    const std::int64_t tokens = attention.window > 0 ? std::min(serving.context, attention.window) : serving.context;
    // Latents are of all heads; of fewer heads than ranks each rank has one.
    const double cached = attention.latent > 0
                              ? real(attention.latent)
                              : shared(attention.kv_heads, serving.tp) * real(attention.key_dim + attention.value_dim);
    elements += real(tokens) * cached;
  }
  return elements * real(serving.concurrency) * cache_bytes_of_element(serving.cache);
}

double workspace_bytes(const Architecture& model, const Serving& serving) {
  constexpr double piece = 2048;
  const double tokens = std::min(piece, real(serving.context) * real(serving.concurrency));
  const double e = serving.weights == WeightFormat::f32 ? 4 : 2, gates = model.gated ? 3 : 2;
  double widest = 0, matrix = 0;
  for (const architecture::Layer& layer : model.kinds) {
    const architecture::Attention& a = layer.attention;
    const double attention = real((a.heads + a.kv_heads) * (a.key_dim + a.value_dim));
    const double mlp = gates * real(layer.mlp_width + layer.experts_used * layer.expert_width);
    const double copies = 2 * real(layer.experts_used) * real(model.width);
    widest = std::max(widest, std::max(attention, mlp) / real(serving.tp) + copies);
    if (serving.weights == WeightFormat::nf4)  // dequantised a matrix at a time
      for (const Weight& weight : layer.weights)
        if (weight.linear()) matrix = std::max(matrix, real(weight.in * weight.out) / real(serving.tp) * e);
  }
  // The residual stream, a norm's output, and the logits of each sequence's last token in f32.
  return tokens * e * (widest + 2 * real(model.width)) + matrix +
         4 * real(serving.concurrency) * shared(model.vocabulary, serving.tp);
}

}  // namespace

std::optional<std::string> problem_of(const Architecture& model, const Serving& serving) {
  if (!model.causal)
    return fmt::format("--serve: {} is an encoder and generates no text; serve a language model", model.type);
  if (serving.context > model.positions)
    return fmt::format("--context {}: beyond the model's {} positions; the nearest is --context {}", serving.context,
                       model.positions, model.positions);
  std::int64_t tp = serving.tp;
  const std::int64_t heads = model.layer(0).attention.heads;
  while (tp > 1 && heads % tp != 0) --tp;
  if (tp != serving.tp) return fmt::format("tp={}: must divide the {} heads; use tp={}", serving.tp, heads, tp);
  return std::nullopt;
}

ServingMemory memory_of(const Architecture& model, const Serving& serving) {
  ServingMemory memory;
  memory.weights = weight_bytes(model, serving, model.first) + weight_bytes(model, serving, model.last);
  std::vector<double> kinds;
  kinds.reserve(model.kinds.size());
  for (const architecture::Layer& kind : model.kinds) kinds.push_back(weight_bytes(model, serving, kind.weights));
  for (const std::size_t kind : model.order) memory.weights += kinds[kind];
  memory.cache = cache_bytes(model, serving);
  memory.workspace = workspace_bytes(model, serving);
  return memory;
}

std::int64_t max_sequences(const Architecture& model, Serving serving, double bytes) {
  constexpr std::int64_t limit = std::int64_t{1} << 24;
  const auto fits = [&](std::int64_t sequences) {
    serving.concurrency = sequences;
    return memory_of(model, serving).total() <= bytes;
  };
  if (!fits(1)) return 0;
  std::int64_t good = 1, bad = 2;
  while (bad < limit && fits(bad)) good = bad, bad *= 2;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

std::vector<std::pair<std::string, Serving>> nearest_that_fit(const Architecture& model, const Serving& serving,
                                                              const Device& device) {
  std::vector<std::pair<std::string, Serving>> all;
  const auto attempt = [&](const std::string& flags, const Serving& other) {
    if (problem_of(model, other) || memory_of(model, other).total() > device.left(other.tp)) return false;
    all.emplace_back(flags, other);
    return true;
  };
  Serving fewer = serving, cache = serving;
  fewer.concurrency = max_sequences(model, serving, device.left(serving.tp));
  if (fewer.concurrency > 0) attempt(fmt::format("--concurrency {}", fewer.concurrency), fewer);
  cache.cache = CacheFormat::fp8;
  attempt("--kv-dtype fp8", cache);
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    Serving smaller = serving;
    smaller.weights = format;
    if (attempt("--set weights=" + word_of(format), smaller)) break;
  }
  Serving more = serving;
  for (more.tp = serving.tp * 2; more.tp <= 64; more.tp *= 2)
    if (attempt(fmt::format("--set tp={}", more.tp), more)) break;
  return all;
}

}  // namespace assay::planning
