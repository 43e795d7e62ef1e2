// Attention as PyTorch runs it, with the projections around it.
#include "workloads/planning/eager_model.h"

#include <utility>

namespace assay::planning {

namespace {

using architecture::Architecture;
using architecture::Attention;

bool has_fused_qkv(const Architecture& model) {
  return model.type == "phi3" || model.type == "gpt2" || model.type == "gpt_neox";
}
bool rotates(const Architecture& model) { return model.rms || model.type == "gpt_neox"; }

}  // namespace

// x cos + rotate_half(x) sin, of which nothing but small tables is kept.
Variable EagerModel::rotated(const Variable& x, double width) {
  const double part = model_.type == "gpt_neox" ? width / 4 : width, all = tokens_ * part;
  Buffer cosine = at_.make(all);
  Buffer half;
  {
    const Buffer negative = at_.make(all / 2);
    half = at_.make(all);
  }
  if (x.wanted()) at_.tape->saves();
  half = at_.make(all);
  Buffer out = at_.make(all);
  cosine = half = nullptr;
  const bool joins = model_.type == "gpt_neox" || model_.type == "phi3";
  if (joins) out = at_.make(tokens_ * width);
  return at_.tape->made(out, {x}, [this, at = at_, all, joins, width](const Buffer&) {
    Buffer of_sine = at.make(all);
    {
      const Buffer negative = at.make(all / 2), first = at.make(all);
      of_sine = nullptr;
      const Buffer second = at.make(all);
      of_sine = at.make(all);
    }
    const Buffer of_cosine = at.make(all);
    Buffer sum = at.make(all);
    if (joins) sum = at.make(tokens_ * width);
    return std::vector<Buffer>{sum};
  });
}

// Scaled dot-product attention by a fused kernel, which keeps its inputs, its output and a logarithm of each row. A
// window narrower than the sequence needs a mask, and with a mask keys and values of groups are repeated.
Variable EagerModel::attend(const Variable& q, const Variable& k, const Variable& v, const Attention& attention) {
  if (model_.type == "gemma2") return attend_eagerly(q, k, v, attention);
  const double queries = tokens_ * real(attention.heads * attention.key_dim);
  const double keys = tokens_ * real(attention.kv_heads * attention.key_dim);
  const bool masked = attention.window > 0 && attention.window < step_.seq;
  const bool repeats = masked && attention.kv_heads < attention.heads;
  std::vector<Buffer> kept = {q.data, k.data, v.data};
  if (repeats) kept[1] = at_.make(queries), kept[2] = at_.make(queries);
  if (masked) kept.push_back(at_.make(real(step_.seq * step_.seq)));
  at_.tape->saves();
  Buffer out = at_.tape->allocate_kept(e_ * queries);
  kept.push_back(out);
  kept.push_back(at_.tape->allocate_kept(4 * tokens_ * real(attention.heads)));
  // With keys and queries in one block the output comes transposed, and the copy is what follows uses.
  if (rotates(model_) && has_fused_qkv(model_)) out = at_.make(queries);
  return at_.tape->made(out, {q, k, v}, [at = at_, kept, queries, keys, repeats](const Buffer&) mutable {
    std::vector<Buffer> all = {at.make(queries), at.make(repeats ? queries : keys), at.make(repeats ? queries : keys)};
    if (repeats)
      for (std::size_t i = 1; i < 3; ++i) all[i] = at.make(keys);
    return all;
  });
}

// Gemma 2's scores are capped, which no fused kernel does: they are computed, capped, masked and kept.
Variable EagerModel::attend_eagerly(const Variable& q, const Variable& k, const Variable& v,
                                    const Attention& attention) {
  const double queries = tokens_ * real(attention.heads * attention.key_dim);
  const double keys = tokens_ * real(attention.kv_heads * attention.key_dim);
  const double all = tokens_ * real(step_.seq * attention.heads);
  // Copies that lie as a batched product wants them, keys and values once a head.
  Buffer query = at_.make(queries), key = at_.make(queries), value = at_.make(queries);
  at_.tape->saves();
  Buffer scores = at_.make(all);
  scores = at_.make(all);  // scaled
  scores = at_.make(all);  // divided
  at_.tape->saves();
  Buffer tangent = at_.make(all);
  scores = at_.make(all);
  scores = at_.make(all);  // masked
  at_.tape->saves();
  Buffer wide = narrow() ? at_.allocate(4 * all) : Buffer();
  Buffer shares = at_.allocate(4 * all);
  wide = nullptr;
  scores = narrow() ? at_.make(all) : shares;
  at_.tape->saves();
  Buffer out = at_.make(queries);
  out = at_.make(queries);
  scores_ = scores;  // what attention gives beside its output, held to the layer's end
  return at_.tape->made(
      out, {q, k, v},
      [this, at = at_, query, key, value, tangent, shares, scores, queries, keys, all](Buffer gradient) mutable {
        gradient = at.make(queries);
        Buffer of_scores = at.make(all), of_value = at.make(queries);
        gradient = value = scores = nullptr;
        of_value = at.make(keys);
        if (narrow()) of_scores = at.allocate(4 * all);
        of_scores = at.allocate(4 * all);
        shares = nullptr;
        if (narrow()) of_scores = at.make(all);
        for (int i = 0; i < 2; ++i) of_scores = at.make(all);  // of the cap's product and its tangent
        tangent = nullptr;
        for (int i = 0; i < 2; ++i) of_scores = at.make(all);
        Buffer of_query = at.make(queries), of_key = at.make(queries);
        of_scores = query = key = nullptr;
        of_key = at.make(keys);
        return std::vector<Buffer>{of_query, of_key, of_value};
      });
}

Variable EagerModel::attention(const Variable& x, const Attention& a) {
  const double queries = real(a.heads * a.key_dim), keys = real(a.kv_heads * a.key_dim);
  const bool transposed = !normalizes_after();
  Variable q, k, v;
  if (has_fused_qkv(model_)) {
    const Variable all = linear(x, next_matrix());
    // Gradients of the three views are joined.
    const double elements = tokens_ * (queries + 2 * keys);
    const bool pads = model_.type == "phi3";
    q = k = v = at_.tape->made_of_views(all, [at = at_, elements, pads](const Buffer&) {
      Buffer joined = at.make(elements);
      if (pads) {
        const Buffer second = at.make(elements);
        joined = at.make(elements);
      }
      return std::vector<Buffer>{joined};
    });
  } else {
    q = linear(x, next_matrix(), transposed);
    k = linear(x, next_matrix(), transposed);
    v = linear(x, next_matrix());
    if (model_.type == "qwen3" || model_.type == "gemma3_text") q = rms_norm(q, queries), k = rms_norm(k, keys);
  }
  if (rotates(model_)) {
    Variable turned = rotated(q, queries), other = rotated(k, keys);
    q = std::move(turned), k = std::move(other);
  }
  return linear(attend(q, k, v, a), next_matrix());
}

}  // namespace assay::planning
