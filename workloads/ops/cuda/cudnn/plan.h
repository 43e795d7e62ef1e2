// cuDNN's graphs without its headers: what a graph was built into, and how it is run. Only frontend.cpp includes
// cuDNN's C++ front end, which takes half a minute to compile.
#pragma once

#include "harness/core/error.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::ops::cudnn {

// Device memory of a graph's tensor, by the id that the tensor was given.
struct Operand {
  std::int64_t id = 0;
  void* data = nullptr;
};
inline Operand operand(std::int64_t id, const void* data) { return {id, const_cast<void*>(data)}; }

// cuDNN refuses to run a plan that it built.
class RunError : public Error {
 public:
  using Error::Error;
};

// One way to run a graph: an engine of cuDNN with its settings. Many runs may share it; it keeps no state of theirs.
class Plan {
 public:
  virtual ~Plan() = default;
  // As cuDNN names it: operation, engine and knobs.
  virtual std::string name() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  // Enqueues the graph with every tensor's memory, by this thread's handle; can be captured. Throws RunError.
  virtual void run(cudaStream_t stream, std::span<const Operand> operands, void* workspace) const = 0;
};

// Which of cuDNN's plans for a graph are wanted.
struct Limits {
  std::size_t workspace_bytes = std::size_t{512} << 20;  // the most that a plan may use
  std::size_t most = 8;                                  // plans, from the best guess of the heuristics on
  bool deterministic = true;                             // the same bits from the same operands
  bool full_f32 = false;                                 // products of f32 in f32: no TF32
};

// In the order of cuDNN's heuristics, mode A before the fallback; none, and the reason, where it has no engine.
struct Plans {
  std::vector<std::shared_ptr<Plan>> plans;
  std::string why_not;
};

// "cuDNN 9.19.0".
std::string version();

}  // namespace assay::ops::cudnn
