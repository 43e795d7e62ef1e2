// The training step's view of a model: parameters, costs, and the layers' forward and backward passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::nn {

class Builder;

enum class Initial { zeros, ones, normal };

// One learned array. Models list them in the order of the forward pass.
struct ParameterSpec {
  std::string name;                 // "block.3.attention.qkv.weight"
  std::vector<std::int64_t> shape;  // canonical: matrices (out, in), convolutions (K, R, S, C)
  Initial initial = Initial::normal;
  double deviation = 0.02;  // standard deviation of Initial::normal
  bool decay = true;        // subject to weight decay

  std::int64_t count() const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : shape) elements *= extent;
    return elements;
  }
};

// The size of one micro-batch.
struct BatchShape {
  std::int64_t samples = 1;  // sequences or images
  std::int64_t seq = 0;      // tokens per sequence; 0 for images
};

// Inputs and classes of a model, which decide what data sets it can be trained on.
struct InputSpec {
  std::int64_t classes = 0;     // token ids or labels are in [0, classes)
  std::int64_t image_size = 0;  // height and width in pixels; 0 for tokens
  std::int64_t positions = 0;   // maximum sequence length; 0: any
  std::int64_t window = 0;  // attention window; longer sequences would need attention that no layer has; 0: no limit
  bool masked = false;      // an encoder: targets are masked tokens; inputs include types and lengths

  std::int64_t max_seq() const { return window > 0 ? window : positions; }  // 0: any
};

// Why the model cannot take sequences of this length, with the nearest that it can; nothing if it can.
std::optional<std::string> problem_of_seq(const InputSpec& input, std::int64_t seq);

// Model FLOPs of training (DESIGN section 4, rule 9) for one sample, with the formula in words.
struct ModelCost {
  double forward = 0;
  double training = 0;
  double training_full_attention = 0;  // counting the whole attention square, as some do
  std::string formula;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const std::string& name() const = 0;
  virtual InputSpec input() const = 0;
  bool images() const { return input().image_size > 0; }  // else tokens
  virtual std::vector<ParameterSpec> parameters() const = 0;
  virtual ModelCost cost(const BatchShape&) const = 0;
  // Appends one micro-batch to the program: forward, loss and (when training) backward.
  virtual void build(Builder&) const = 0;
};

}  // namespace assay::nn
