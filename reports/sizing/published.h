// What publications say about training: how fast it ran, and what long runs lose. configs/sizing/published.json.
#pragma once

#include "harness/json/fwd.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::report::sizing {

// Values of which only the bounds are known.
struct Range {
  double low = 0;
  std::optional<double> high;  // absent: no upper bound is known

  bool operator==(const Range&) const = default;
};
// A low end of 0 is unknown, thus null: that of a speed or a price without a highest time.
Json to_json(const Range& range);

struct PublishedRun {
  std::string hardware;   // name of its sheet
  std::string model;      // for people
  std::string precision;  // as in parameters of cases: "bf16"
  std::optional<std::int64_t> gpus;
  std::int64_t seq = 0;
  double weights = 0;  // of matrix products
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::optional<double> power_limit;     // of a GPU, in W; absent: its TDP
  std::optional<double> tokens_per_gpu;  // per second
  std::optional<double> mfu;  // as published, with the whole attention square; absent if tokens_per_gpu is known
  std::string source;

  // FLOPs of training on one token with half the attention square, as Model::cost counts:
  // 6 weights + 6 layers x width x seq.
  double flops_per_token() const;
  // Part of `peak`, in FLOP/s.
  double utilization(double peak) const;

 private:
  double half_square() const;  // FLOPs per token of half of attention's square
};

// Part of the time, or a rate per GPU and hour.
struct PublishedShare {
  double low = 0;
  double high = 0;
  std::string source;
};

// Assay's training speed over PyTorch's.
struct PyTorchRatio {
  std::string model;  // of configs/models
  std::string precision;
  std::string device;  // cpu, cuda
  double low = 0, value = 0, high = 0;
  std::string source;

  // Members of the answer of `assay size`.
  static void members(auto& self, auto& io) {
    io("value", self.value), io("low", self.low), io("high", self.high), io("source", self.source);
  }
};

struct Published {
  std::vector<PublishedRun> training;
  PublishedShare checkpoints;  // time spent writing them, of the time of steps
  PublishedShare idle;         // time without steps for other reasons, of the time of steps
  PublishedShare restarts;     // failures per GPU and hour
  double hours_lost = 0;       // of work by each
  PublishedShare scaling;      // what of a rank's speed remains at another number of ranks
  std::vector<PyTorchRatio> beside_pytorch;
  std::optional<PublishedShare> here;  // of the peak that was measured on this machine; not from the file
};

// Throws UsageError that lists every error of the file with its place.
Published read_published(const std::filesystem::path& file);

}  // namespace assay::report::sizing
