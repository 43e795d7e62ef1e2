// Token embedding, plus learned positions and token types if the model has them.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

// y[b, t] = table[ids[b, t]] + positions[t] + types[type_ids[b, t]], the last two being optional.
struct EmbeddingDesc {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  bool positions = false;
  std::int64_t types = 0;         // 0: none
  DType dtype = DType::f32;       // type of y and dy
  DType parameters = DType::f32;  // type of the tables
  DType gradient = DType::f32;    // type of the tables' gradients
  // Backward adds to the gradients; otherwise rows that were not looked up become zero. Two flags, because a tied table
  // already holds the head's gradient.
  bool accumulate_table = false;
  bool accumulate_others = false;  // the tables of positions and types

  bool operator==(const EmbeddingDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const EmbeddingDesc& desc);

class EmbeddingForward : public OpOf<EmbeddingDesc> {
 public:
  struct Args {
    const std::int32_t* ids = nullptr;  // (B, T), each in [0, vocabulary): checked when the batch is made
    const std::int32_t* type_ids = nullptr;
    const void* table = nullptr;      // (vocabulary, width)
    const void* positions = nullptr;  // (at least T, width)
    const void* types = nullptr;      // (types, width)
    void* y = nullptr;                // (B, T, width)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

// Sums do not depend on the number of threads.
class EmbeddingBackward : public OpOf<EmbeddingDesc> {
 public:
  struct Args {
    const std::int32_t* ids = nullptr;
    const std::int32_t* type_ids = nullptr;
    const void* dy = nullptr;    // (B, T, width)
    void* dtable = nullptr;      // (vocabulary, width)
    void* dpositions = nullptr;  // (T, width): rows beyond T are left to the caller
    void* dtypes = nullptr;      // (types, width)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
