// Memory as PyTorch's eager autograd uses it: operations allocate, keep what their backward pass needs, and free the
// rest in the order in which PyTorch runs them.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace assay::planning {

enum class Use { weights, gradients, optimizer, activations, workspace, communication };
using Uses = std::array<double, 6>;  // bytes of each
// On which a tensor is allocated: PyTorch's caching allocator has segments of its own for each.
enum class Stream { compute, all_gather, reduce_scatter };
inline constexpr std::size_t streams = 3;

// What is allocated and freed, in order.
class Heap {
 public:
  struct Event {
    std::size_t block = 0;
    double bytes = 0;  // 0: the block is freed
    Stream stream = Stream::compute;
  };

  std::size_t allocate(double bytes, Use use);
  void free(std::size_t block, double bytes, Use use, Stream on);
  void change(double bytes, Use from, Use to);

  // Of what is allocated next.
  Use use = Use::weights;
  Stream stream = Stream::compute;
  double live() const { return live_; }
  double peak() const { return peak_; }
  const Uses& at_peak() const { return at_peak_; }
  const std::vector<Event>& events() const { return events_; }

 private:
  double live_ = 0, peak_ = 0;
  Uses of_use_{}, at_peak_{};
  std::size_t blocks_ = 0;
  std::vector<Event> events_;
};

// A tensor's storage, freed with the last that refers to it.
class Block {
 public:
  Block(Heap& heap, double bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  double bytes() const { return bytes_; }
  void become(Use use);

 private:
  Heap& heap_;
  double bytes_;
  Use use_;
  Stream stream_;
  std::size_t id_;
};
using Buffer = std::shared_ptr<Block>;

// Gradients of parameters, until an optimizer or a reduction takes them.
class Gradients {
 public:
  // `again`: the parameter has a gradient already, to which this one is added in place.
  explicit Gradients(bool again = false) : again_(again) {}
  void add(Buffer gradient);
  void clear() { all_.clear(); }

 private:
  bool again_;
  std::vector<Buffer> all_;
};

// What selective recomputation keeps of a region's first pass, in order.
struct Kept {
  std::deque<Buffer> outputs;
  std::size_t products = 0;  // so far, in this pass
};

class Tape;

// A tensor, and the operation that made it if a gradient is wanted.
struct Variable {
  static constexpr std::size_t no_node = static_cast<std::size_t>(-1);

  Buffer data;
  std::size_t node = no_node;

  bool wanted() const { return node != no_node; }
};

class Tape {
 public:
  // Takes the gradient of the output, and returns those of the inputs, in their order.
  using Backward = std::function<std::vector<Buffer>(Buffer gradient)>;

  // `forgets`: operations keep nothing, as in a region that is computed again. `last_save`: after so many operations
  // that keep something the rest is not computed, as torch.utils.checkpoint stops early; 0: all of it.
  // `kept`: a tape that forgets puts there what is kept, the next one takes it.
  explicit Tape(Heap& heap, bool forgets = false, std::size_t last_save = 0, Kept* kept = nullptr)
      : heap_(heap), forgets_(forgets), last_save_(last_save), kept_(kept) {}

  Buffer allocate(double bytes);
  // As allocate(), of an output that selective recomputation keeps.
  Buffer allocate_kept(double bytes);
  // The output of a matrix product without a bias: every second is kept, the first among them.
  Buffer allocate_product(double bytes);
  // Before the output of an operation that keeps something.
  void saves();
  std::size_t saved() const { return saved_; }

  // The output of an operation on `inputs`, of which only those that are wanted get a gradient. `trains`: it also has
  // parameters that do.
  Variable made(Buffer data, const std::vector<Variable>& inputs, Backward backward, bool trains = false);
  // As made(), of an output of which several views are used: their gradients come together, and are joined.
  Variable made_of_views(const Variable& input, Backward join);
  // Where gradients end.
  Variable input(Buffer data, bool wanted);
  // Runs the operations backwards, and returns the gradient of the first input().
  Buffer backward(const Variable& output, Buffer gradient);

 private:
  struct Node {
    std::vector<std::size_t> inputs;
    Backward backward;
    Buffer gradient;
    bool joins = false;
    std::vector<Buffer> parts;  // of `joins`, all but the first
  };

  Heap& heap_;
  bool forgets_ = false;
  std::size_t last_save_ = 0, saved_ = 0;
  Kept* kept_ = nullptr;
  std::vector<Node> nodes_;
};

}  // namespace assay::planning
