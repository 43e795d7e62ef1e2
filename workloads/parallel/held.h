// How the ranks of a layout hold a model, and what each does in a step.
#pragma once

#include "workloads/parallel/layout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::parallel {

// What one rank does in one optimizer step.
struct Work {
  double items = 0;  // tokens or images
  std::int64_t seq = 0;
  double parameters = 0;  // of the model
  double flops = 0;       // of the model, without recomputation
  double bytes = 0;       // that memory must move at least
  double exchanged = 0;   // bytes that the rank must send at least
  double offloaded = 0;   // bytes between device and host, one way
  std::string precision;
};

// What a rank sends in a step to those that share something with it.
struct Sent {
  std::string group;  // "tp", "cp", "ep", "dp", "pp"
  std::int64_t ranks = 1;
  std::uint64_t bytes = 0;
  bool within_host = true;
  std::string link;               // "NVLink 4", "between hosts"
  std::optional<double> seconds;  // at the link's rate; nothing if that is not known

  static void members(auto& self, auto& io) {
    io("group", self.group), io("ranks", self.ranks), io("bytes", self.bytes), io("within_host", self.within_host);
    io("link", self.link), io("seconds_at_least", self.seconds);
  }
};

struct Held {
  Layout layout;
  std::int64_t ep = 1;           // of the dp x cp ranks, those that share the experts
  std::int64_t cp = 1;           // ranks that share each sequence
  std::int64_t chunks = 1;       // pieces of a pipeline's stages
  std::string offload = "none";  // what lies in the host's memory: optimizer, weights
  std::uint64_t host_bytes = 0;  // that each rank has there
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  std::string checkpointing;
  std::uint64_t total_bytes = 0;  // of each rank
  bool fits = false;              // else this is the step that needs the least memory
  std::vector<Sent> sent = {};
  double bubble = 0;  // of the step
  Work work = {};
};

}  // namespace assay::parallel
