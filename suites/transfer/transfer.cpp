// The transfer family.
#include "suites/transfer/transfer.h"

#include "suites/transfer/cases.h"

namespace assay {

namespace transfer {

namespace {

bool uses_host(const Params& params) {
  const auto direction = params.choice<Direction>("direction");
  return direction == Direction::h2d || direction == Direction::d2h || direction == Direction::both;
}

// Copies without host memory say so whatever was requested, so that they are one case and not one per kind.
void complete(Params& params) {
  if (!uses_host(params)) params.set("memory", word_of(HostMemory::none));
}

std::optional<std::string> conflict(const Params& params, const World&) {
  if (uses_host(params) && params.choice<HostMemory>("memory") == HostMemory::none)
    return "memory=device is for copies inside a GPU and between GPUs; host memory is pinned or pageable";
  return std::nullopt;
}

Estimate estimate(const Params& params, const World&) {
  const auto bytes = static_cast<double>(params.integer("bytes"));
  double ways = 1;
  switch (params.choice<Direction>("direction")) {
    case Direction::both:
    case Direction::p2p_both:
    case Direction::p2p_both_write: ways = 2; break;
    case Direction::p2p_all:
    case Direction::p2p_all_write: ways = 7; break;  // ways of each of eight GPUs
    default: break;
  }
  Estimate result;
  result.bytes = ways * bytes;
  result.memory_bytes = 2 * ways * bytes;
  return result;
}

bool between_gpus(const Params& params) { return is_between_gpus(params.choice<Direction>("direction")); }

std::unique_ptr<Case> make(const Params& params) {
  return between_gpus(params) ? make_pair_case(params) : make_host_case(params);
}

}  // namespace
}  // namespace transfer

Family transfer_family() {
  Family family;
  family.name = "transfer";
  family.summary = "copies between a GPU and its host, inside it, and between every pair of GPUs";
  family.params = {
      axis::choice<transfer::Direction>("direction")
          .runs({"h2d", "d2h", "both", "d2d", "p2p", "p2p_staged", "p2p_write", "p2p_both", "p2p_all"})
          .doc("host to device, device to host, both at once; inside the GPU; between every pair of GPUs: one reads, "
               "through the host, one writes, both ways at once, all pairs at once"),
      axis::choice<transfer::HostMemory>("memory")
          .runs({"pinned", "pageable"})
          .doc("the host's; device where none is used"),
      axis::bytes("bytes", {4 << 10, 1 << 20, 1 << 30}).at_least(1).doc("bytes of one copy, each way"),
      axis::choice<transfer::By>("by").runs({"engine"}).doc("a copy engine, or a kernel on the multiprocessors"),
      axis::gpus(),
  };
  family.estimate = transfer::estimate;
  family.make = transfer::make;
  family.faults = {Fault::bit_flip};
  family.devices = {DeviceKind::cuda};
  family.complete = transfer::complete;
  family.conflict = transfer::conflict;
  family.takes_one_rank = transfer::between_gpus;
  return family;
}

}  // namespace assay
