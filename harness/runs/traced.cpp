#include "harness/runs/traced.h"

#include "harness/core/error.h"
#include "harness/json/members.h"
#include "harness/runs/figures.h"

namespace assay {

void TracedWork::add(const TracedWork& other, double scale) {
  if (seconds == 0)
    dtype = other.dtype, least = 0;
  else if (dtype != other.dtype)
    dtype.clear();
  flops += scale * other.flops, bytes += scale * other.bytes, seconds += scale * other.seconds;
  least = least && other.least ? std::optional(*least + scale * *other.least) : std::nullopt;
  least_by_memory += scale * other.least_by_memory;
}

Json trace_json(const Traced& traced) { return members_json(traced); }

std::optional<double> traced_span(const Record& record, std::string_view name) {
  const auto span = span_of(record, name);
  return span ? span : span_of(record, "window " + std::string(name));
}

std::optional<Traced> traced_of(const Json& run) {
  const Json& trace = member(run, "/trace");
  if (!trace.is_object()) return std::nullopt;
  try {
    Traced traced = read_value<Traced>(trace);
    for (TracedUse& use : traced.uses)
      if (use.work && !(use.work->flops > 0 && use.work->bytes > 0 && use.work->seconds > 0)) use.work.reset();
    return traced;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace assay
