// Everything that the programs of one step share: parameters, ops, inputs, and all arrays that outlive a micro-batch.
#pragma once

#include "workloads/nn/model.h"
#include "workloads/nn/op_cache.h"
#include "workloads/nn/program_arena.h"
#include "workloads/nn/step_options.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::nn {

// An array in one of the regions that outlive a program.
struct Lasting {
  std::string name;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  std::size_t offset = 0;  // in bytes, from the start of its region
  std::size_t bytes() const { return static_cast<std::size_t>(elements) * size_of(dtype); }
};

// The running statistics of a batch norm, updated by r = (1 - momentum) r + momentum * batch.
struct RunningStatistic : Lasting {
  double momentum = 0.1;
  double initial = 0;
};

// A tensor that is rounded to 8 bits with its own scale.
struct RoundedTensor {
  std::string name;  // "block.3.mlp.in/gradient"
  DType dtype = DType::fp8_e4m3;
};

struct Constant : Lasting {
  std::function<void(double* values)> fill;
};

// The arrays of a micro-batch. A model need not read all of them.
enum class Input : std::uint8_t { ids, type_ids, lengths, images, targets };
inline constexpr std::size_t input_kinds = 5;

struct StepLayout {
  StepLayout(const StepOptions& step_options, std::vector<ParameterSpec> parameters,
             std::shared_ptr<ops::Backend> backend)
      : options(step_options),
        specs(std::move(parameters)),
        ops(std::move(backend)),
        room(specs.size()),
        partly_written(specs.size()) {
    for (std::size_t i = 0; i < specs.size(); ++i) index.emplace(specs[i].name, i);
  }

  const std::optional<Lasting>& input(Input which) const { return inputs[static_cast<std::size_t>(which)]; }

  StepOptions options;
  std::vector<ParameterSpec> specs;
  std::map<std::string, std::size_t, std::less<>> index;
  OpCache ops;
  std::vector<std::int64_t> room;    // zero elements after each parameter, in all its arrays
  std::vector<bool> partly_written;  // gradients of which a program leaves elements as they are, which must be zero

  // Layers read a rounded copy of the masters, written by the optimizer, because the backend has no packed form to
  // round into.
  bool copies_weights = false;
  // The backend packs weights, and does so from rounded copies, because ranks divide the masters.
  bool packs_copies = false;

  std::vector<RunningStatistic> running;
  std::size_t running_bytes = 0;
  std::vector<Constant> constants;
  std::size_t constant_bytes = 0;
  std::map<std::pair<std::size_t, const ops::Op*>, std::size_t> packed;  // (parameter, op) to offset
  std::size_t packed_bytes = 0;
  std::vector<RoundedTensor> rounded;
  std::optional<Lasting> inputs[input_kinds];
  std::size_t input_bytes = 0;  // inputs of one micro-batch
};

}  // namespace assay::nn
