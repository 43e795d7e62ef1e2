// A neural network as a list of weights: enough to count parameters, memory, traffic and a cache of keys and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::architecture {

enum class Part { embedding, norm, attention, mlp, experts, router, head };

// How tensor parallelism divides a matrix: by its outputs, its inputs, or not at all.
enum class Split { none, outputs, inputs };

struct Weight {
  std::string name;  // as transformers calls it: "q_proj"
  Part part = Part::mlp;
  std::int64_t in = 1;  // 1 for vectors and tables of vectors: `out` is then their size
  std::int64_t out = 1;
  bool bias = false;  // `out` more
  Split split = Split::none;
  std::int64_t copies = 1;  // matrices like this: one an expert
  std::int64_t used = 1;    // of them by each token

  std::int64_t one() const { return in * out + (bias ? out : 0); }
  std::int64_t count() const { return copies * one(); }
  std::int64_t active() const { return used * one(); }
  // A matrix that adapters may be added to and that libraries quantise.
  bool linear() const { return in > 1 && (part == Part::attention || part == Part::mlp || part == Part::experts); }
};

struct Attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t key_dim = 0;    // of a head
  std::int64_t value_dim = 0;  // of a head
  std::int64_t latent =
      0;  // elements that multi-head latent attention caches of a token; 0: keys and values themselves
  std::int64_t window = 0;  // tokens that sliding attention looks back; 0: all

  // Elements that a cache keeps of each token.
  std::int64_t cached() const { return latent > 0 ? latent : kv_heads * (key_dim + value_dim); }
};

struct Layer {
  std::vector<Weight> weights;
  Attention attention;
  std::int64_t norms = 2;      // of the whole width
  std::int64_t mlp_width = 0;  // of what every token passes: a dense MLP, or shared experts
  std::int64_t expert_width = 0;
  std::int64_t experts = 0;       // routed ones; 0: dense
  std::int64_t experts_used = 0;  // by each token
};

// How a file's weights are stored if they are quantised.
struct Quantization {
  std::string method;             // "awq"
  double linear_bits = 16;        // a weight of the layers' matrices, with its share of scales
  bool experts_only = false;      // only the matrices of experts
  std::vector<std::string> kept;  // names of weights that are stored in 16 bits
};

struct Architecture {
  std::string name;
  std::string type;  // model_type: "qwen3"
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // longest sequence
  std::int64_t width = 0;
  std::vector<Weight> first;  // before the layers: embeddings
  std::vector<Weight> last;   // after them: norm and head
  std::vector<Layer> kinds;
  std::vector<std::size_t> order;  // kind of each layer
  bool gated = true;               // MLPs have three matrices
  bool rms = true;                 // norms have one vector
  bool tied = false;               // the head's matrix is the embedding
  bool causal = true;              // generates text
  std::int64_t labels = 0;         // of a classifier of images; 0: a language model
  std::int64_t patches = 0;        // of an image
  std::optional<Quantization> stored;
  std::vector<std::string> notes;  // what of the file was not understood or not counted

  const Layer& layer(std::size_t index) const { return kinds.at(order.at(index)); }
  std::int64_t layers() const { return static_cast<std::int64_t>(order.size()); }
  std::int64_t experts() const;
  std::int64_t parameters() const;
  // Without experts that a token does not use.
  std::int64_t active_parameters() const;
  // Bits that a weight is stored in, `bits` if it is not quantised.
  double stored_bits(const Weight& weight, double bits) const;
};

std::int64_t count(const std::vector<Weight>& weights);

}  // namespace assay::architecture
