// Takes the events of a trace one by one and keeps of them what its steps, kernels and collectives need.
#pragma once

#include "harness/kineto/parts.h"
#include "harness/kineto/products.h"
#include "harness/kineto/trace.h"

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::kineto {

enum class Category { other, annotation, operation, python, kernel, copy };
Category category_from(std::string_view text);

struct Event {
  std::string name, collective, group;
  Category category = Category::other;
  bool complete = false;  // it has a start and a duration
  double start_us = std::numeric_limits<double>::quiet_NaN(), duration_us = start_us;
  std::int64_t thread = 0, device = 0, sequence = -1;
  std::int64_t external = -1, correlation = -1;  // of an operator and what it launches, of a launch and its kernel
  Inputs inputs;

  void clear();
};

class Events {
 public:
  // `step` as of read_trace(); both must outlive this.
  Events(const std::string& file, const std::string& step) : file_(file), step_(step) { trace.file = file; }

  Event event;  // the one that is being read
  RankTrace trace;
  std::vector<std::string> devices;  // GPUs, by number
  bool seen = false;                 // whether the document has a list of events
  std::size_t count = 0;

  // Takes `event`. Throws UsageError if it is malformed.
  void take();
  // When all were taken. Throws UsageError if there was none, or no step.
  RankTrace finish();

 private:
  // What a thread of the host did; the first that covers a moment counts.
  enum Layer { data, checkpoint, optimizer, backward, operators, layer_count };
  static constexpr std::uint32_t no_product = 0xffffffff;
  struct Open {
    std::uint32_t name;
    std::int64_t end, own;  // ns without the operators that it calls
    std::uint32_t product;
  };
  // A call of an operator whose work is known, and the kernels that it launched; without a GPU the operators that it
  // called.
  struct Product {
    ProductKind kind;
    Work work;  // 0 FLOPs: it counts no more
    std::int64_t ns = 0, longest = 0;
    std::uint32_t name = 0;  // of the longest
  };
  struct Thread {
    std::array<Ranges, layer_count> layers;
    std::int64_t started = 0, covered = 0;  // by what was kept last
    std::vector<Open> open;                 // operators that have not ended
    std::int64_t last_operator = std::numeric_limits<std::int64_t>::min();
    Range product_range;  // of the newest call of known work
    std::uint32_t product = no_product;
  };
  struct Sum {
    double calls = 0, ns = 0;
  };
  struct StepRange {
    std::int64_t number;
    Range range;
    std::int64_t thread;
  };

  void take_host(Range range);
  void take_gpu(Range range);
  void take_operator(Thread& thread, Range range, std::uint32_t product);
  // Closes the operators that ended before.
  void close_operators(Thread& thread, std::int64_t before);
  // The call of known work that the operator is or is a part of.
  std::uint32_t take_product(Thread& thread, Range range);
  static void add_time(Product& product, std::uint32_t name, std::int64_t ns);
  std::optional<Layer> layer_of_event() const;
  bool take_step(Range range);
  // Whether what begins then counts for the table of kernels or operators.
  bool counts(std::int64_t start) const;
  void add_collective(std::string name, Range range);
  std::uint32_t name_id(const std::string& name);
  void forget_operators();
  void order_steps();
  void divide_gpu();
  void divide_host();
  std::vector<Range> windows() const;
  void finish_uses();
  void add_work();

  const std::string &file_, &step_;
  std::vector<StepRange> steps_;
  std::map<std::int64_t, std::int64_t> begun_;  // ends of the steps so far, by start
  std::map<std::int64_t, Thread> threads_;
  Ranges kernels_, gpu_collectives_, copies_, host_collectives_;
  double copy_ns_ = 0, pageable_ns_ = 0;
  std::set<std::int64_t> used_devices_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::deque<std::string> names_;
  std::vector<Sum> sums_;
  std::vector<Product> products_;
  std::unordered_map<std::int64_t, std::uint32_t> product_of_;  // by External id
  bool shapes_missing_ = false;
  std::set<std::string> annotations_;  // some of them, for messages
  bool operators_in_order_ = true;
  std::size_t negative_ = 0;  // events that end before they begin
};

}  // namespace assay::kineto
