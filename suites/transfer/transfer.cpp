// The transfer family.
#include "suites/transfer/transfer.h"

#include "suites/transfer/cases.h"

namespace assay {

namespace transfer {

namespace {

bool uses_host(const Params& params) {
  const std::string& direction = params.text("direction");
  return direction == "h2d" || direction == "d2h" || direction == "both";
}

// Where no host memory is used the parameter says so, whatever was asked for: one case, not one a kind.
void complete(Params& params) {
  if (!uses_host(params)) params.set("memory", std::string("device"));
}

std::optional<std::string> conflict(const Params& params, const World&) {
  if (uses_host(params) && params.text("memory") == "device")
    return "memory=device is for copies inside a GPU and between GPUs; host memory is pinned or pageable";
  return std::nullopt;
}

Estimate estimate(const Params& params, const World&) {
  const auto bytes = static_cast<double>(params.integer("bytes"));
  const double ways = params.text("direction") == "both" ? 2 : 1;
  Estimate result;
  result.bytes = ways * bytes;
  result.memory_bytes = 2 * ways * bytes;
  return result;
}

std::unique_ptr<Case> make(const Params& params) {
  return params.text("direction").starts_with("p2p") ? make_pair_case(params) : make_host_case(params);
}

}  // namespace
}  // namespace transfer

Family transfer_family() {
  Family family;
  family.name = "transfer";
  family.summary = "copies between a GPU and its host, inside it, and between every pair of GPUs";
  ParamSpec bytes;
  bytes.name = "bytes";
  bytes.type = ParamType::bytes;
  bytes.defaults = {std::int64_t{4} << 10, std::int64_t{1} << 20, std::int64_t{1} << 30};
  bytes.minimum = 1;
  bytes.help = "bytes of one copy, each way";
  const std::vector<std::string> directions{"h2d", "d2h", "both", "d2d", "p2p", "p2p_staged"};
  family.params = {
      choice("direction", directions, directions,
             "host to device, device to host, both at once; inside the GPU; between every pair of GPUs with peer "
             "access, or through the host"),
      choice("memory", {"pinned", "pageable", "device"}, {"pinned", "pageable"},
             "the host's; device where none is used"),
      std::move(bytes),
      choice("by", {"engine", "kernel"}, {"engine"}, "a copy engine, or a kernel on the multiprocessors"),
      gpus_param(),
  };
  family.estimate = transfer::estimate;
  family.make = transfer::make;
  family.faults = {Fault::bit_flip};
  family.devices = {DeviceKind::cuda};
  family.complete = transfer::complete;
  family.conflict = transfer::conflict;
  return family;
}

}  // namespace assay
