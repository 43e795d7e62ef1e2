// The interface to cuDNN's graphs without its headers. Only frontend.cpp includes cuDNN's C++ front end, which takes
// half a minute to compile.
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

// The device memory of a graph's tensor, by the tensor's id.
struct Operand {
  std::int64_t id = 0;
  void* data = nullptr;
};
inline Operand operand(std::int64_t id, const void* data) { return {id, const_cast<void*>(data)}; }

// cuDNN cannot run a plan that it built.
class RunError : public Error {
 public:
  using Error::Error;
};

// One way to run a graph: one of cuDNN's engines with its settings. Stateless, so concurrent runs may share it.
class Plan {
 public:
  virtual ~Plan() = default;
  // cuDNN's name: operation, engine and knobs.
  virtual std::string name() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  // Enqueues the graph with the memory of all its tensors, on this thread's handle; can be captured. Throws RunError.
  virtual void run(cudaStream_t stream, std::span<const Operand> operands, void* workspace) const = 0;
  // Keeps the compiled plan beside the choices of trials, so that later processes need not compile it (kept_plans.h).
  virtual void keep() const {}
};

// Which of cuDNN's plans for a graph to return.
struct Limits {
  std::size_t workspace_bytes = std::size_t{512} << 20;  // maximum per plan
  std::size_t max_plans = 8;                             // from the heuristics' best guess on
  std::size_t max_failures = 8;                          // plans that cannot be built take as long as others
  bool deterministic = true;                             // the same bits from the same operands
  bool full_f32 = false;                                 // f32 products without TF32
  std::string name = {};                                 // builds only the plan of this name; empty: any
};

// In the order of cuDNN's heuristics, mode A before the fallback; none, and the reason, if it has no engine.
struct Plans {
  std::vector<std::shared_ptr<Plan>> plans;
  std::string why_not;
};

// "cuDNN 9.19.0".
std::string version();

// cuDNN's own description of this process's GPU, as JSON. Throws Error.
std::string device_description();
// From now on, plans are for the GPU of that description, which this process need not have; they cannot run.
void plan_for(const std::string& description);

}  // namespace assay::ops::cudnn
