// What the flags of `assay size` ask for.
#pragma once

#include "harness/machine/hardware.h"
#include "reports/cost/price.h"
#include "reports/sizing/forecast.h"
#include "reports/sizing/here.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::report::sizing {

// As typed; empty: not given.
struct SizeFlags {
  std::string model, tokens, max_usd, deadline, hardware, count, prices;  // count: 1..64 unless given
  std::vector<std::string> sets, from, anchors;
};

struct SizeRequest {
  double items = 0;                        // tokens or images of the whole training
  std::optional<double> budget, deadline;  // USD, hours
  std::vector<std::int64_t> gpus;          // ascending
  bool count_given = false;                // else they are the usual ones
  bool here = false;                       // also this machine, whose sheet the runs give
  LookAtMachine look;                      // needed then
  std::vector<HardwareSheet> hardware;     // that is tried
  std::vector<HardwareSheet> sheets;       // all that are known
  std::vector<Measured> measured;          // by the user
  std::vector<PriceFile> prices;
  std::vector<std::string> remarks;  // on what the user gave and nothing can use
  Published published;
  std::vector<std::string> from;  // run directories, as typed
};

// Throws UsageError for a flag or a file that cannot be used. Does not read the runs of `from`.
SizeRequest read_request(const SizeFlags& flags);

// Sheets by name or file, "h100-sxm,my.json"; all GPUs if it is empty. Throws UsageError for an unknown one.
std::vector<HardwareSheet> read_hardware_list(const std::string& list);

// "8", "8,64" or "1..64": both ends, and the powers of two between them. Ascending, each once.
std::vector<std::int64_t> read_gpus(const std::string& text);
// "300000000000", "3e11", "300B".
double read_count(const std::string& flag, std::string text);

}  // namespace assay::report::sizing
