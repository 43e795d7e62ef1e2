// Whether the figures of two records may be compared, and if not, why. Which case they are (Identity) is the caller's.
#pragma once

#include "harness/record/record.h"

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The attributes that a report needs to be equal.
struct Scope {
  // Two sides, whose labels differ on purpose. Schema 1 does not tell the user's labels from conditions: between sides
  // neither counts for its records.
  bool sides = false;
  std::span<const std::string_view> free_protocol = {};  // fields that may differ
  std::span<const std::string_view> free_choices = {};   // choices that may differ
  const std::set<std::string>* bound_labels = nullptr;   // labels that must be equal like conditions
};

struct Difference {
  bool protocol = false;                  // a field of the protocol; else a condition, a choice or a bound label
  std::string name;                       // "hash" if two protocols differ in no field
  std::optional<std::string> own, other;  // absent: not recorded
};

// Empty if the figures may be compared.
std::vector<Difference> differences(const Record& own, const Record& other, const Scope& scope);

// The two parts that must be equal, for grouping many records of one schema: equal for records without differences.
std::string protocol_signature(const Record& record, const Scope& scope);
Attributes bound_attributes(const Record& record, const Scope& scope);

// The protocol's stated hash, or one of its fields if it states none.
std::string protocol_of(const Record& record);

}  // namespace assay
