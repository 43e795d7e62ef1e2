#include "harness/runs/traced.h"

#include "harness/core/error.h"
#include "harness/json/members.h"
#include "harness/runs/figures.h"

namespace assay {

Json trace_json(const Traced& traced) { return members_json(traced); }

std::optional<double> traced_span(const Record& record, std::string_view name) {
  const auto span = span_of(record, name);
  return span ? span : span_of(record, "window " + std::string(name));
}

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
