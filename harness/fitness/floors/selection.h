// Which figures something in a file is about: a floor, a published value.
#pragma once

#include "harness/json/json.h"
#include "harness/runs/run_set.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

// One metric of the cases that match.
struct Selection {
  std::string key;                            // pattern of keys: * matches any characters, including /
  std::string metric;                         // throughput, bandwidth, ...
  std::string unit;                           // base unit of the metric
  Json protocol;                              // fields that the record's protocol must have
  std::string device;                         // cpu, cuda; empty for any
  std::optional<int> ranks;                   // of the record's world
  std::optional<int> nodes;                   // of the record's world
  std::map<std::string, std::string> labels;  // patterns for labels of the record or its run
  std::string source;
  std::string note;
};

// Max of a count in a file.
inline constexpr int max_count = 1000000;

// Names of its members in a file, and `more`: for Cursor::only.
std::vector<std::string> selection_members(std::vector<std::string> more);
// Adds a problem for each error: wrong types, a unit that does not fit the metric, no source.
void read_selection(const Cursor& at, Selection& selection);
// A number in `unit`, or text: "700 TFLOP/s", "95%" (unit 1), "250 ns", "4 GiB".
std::optional<double> read_quantity(const Cursor& at, const std::string& unit, double min, double max);

// Whether a key matches a pattern in which * matches any run of characters, including /.
bool key_matches(std::string_view pattern, std::string_view key);
// Whether the record has the device, world size and labels.
bool concerns(const Selection& selection, const Entry& entry);
// Lets it match records of any number of threads, which also changes the hash of a protocol.
void match_any_threads(Selection& selection);
// Fields of the protocol that differ: "cache is hot, the floor asks for cold"; empty if all requested ones agree.
std::string protocol_difference(const Selection& selection, const Record& record);

}  // namespace assay::fitness
