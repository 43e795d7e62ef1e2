// Values of parameters as files and flags write them: scalars, lists and ranges, checked against the schema.
#pragma once

#include "harness/json/json.h"
#include "harness/plan/params.h"

#include <optional>
#include <string_view>
#include <vector>

namespace assay {

// {"from":1,"to":64,"factor":4} or {"from":1,"to":9,"step":2}; `to` is included if the sequence reaches it.
struct ValueRange {
  ParamValue from;
  ParamValue to;
  std::optional<double> factor;  // above 1; an integer if the values are
  std::optional<double> step;    // above 0; an integer if the values are

  // Number of values, without making them; saturates at 1e18.
  double count() const;
  void append_to(std::vector<ParamValue>& values) const;
};

inline constexpr std::string_view sweep_word = "sweep";

// The values that an entry gives one parameter.
struct ValueList {
  std::vector<ParamValue> scalars;
  std::vector<ValueRange> ranges;
  bool swept = false;  // the scalars come from the word "sweep"

  double count() const;
  // Scalars first, then each range, in the order written.
  std::vector<ParamValue> values() const;
};

// One value. Adds a problem and returns nullopt if its type is wrong, or it is not allowed or out of range.
std::optional<ParamValue> read_value(const ParamSpec& spec, const Cursor& cursor);
// A value, a list of values and ranges, or a range; "sweep", if the parameter has a sweep.
std::optional<ValueList> read_values(const ParamSpec& spec, const Cursor& cursor);
// Values of a flag, separated by commas ("\," is a comma inside a value): `v1,v2`.
std::optional<ValueList> read_values(const ParamSpec& spec, std::string_view text, Problems& problems);

}  // namespace assay
