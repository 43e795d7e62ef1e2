#include "harness/runs/traced.h"

#include "harness/core/error.h"
#include "harness/json/members.h"

namespace assay {

Json trace_json(const Traced& traced) { return members_json(traced); }

std::optional<Traced> traced_of(const Json& run) {
  const Json& trace = member(run, "/trace");
  if (!trace.is_object()) return std::nullopt;
  try {
    return read_value<Traced>(trace);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace assay
