// Floors: what a machine must reach, from a file.
#pragma once

#include "harness/fitness/floors/selection.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

enum class Bound { at_least, at_most };

// One limit, on one metric. Every matching record is judged; the worst decides.
struct Floor : Selection {
  Bound bound = Bound::at_least;
  double limit = 0;       // in `unit`; for a relative floor, a fraction of the fleet's median
  bool relative = false;  // to the median of the hosts (or GPUs) that ran the same case
  int min_members = 3;    // a smaller fleet is not judged
  bool required = false;  // fails if there is no usable record
  std::string pointer;    // into the file
  // Patterns, of its file: records of hardware with another name are refused. Empty: any.
  std::vector<std::string> hardware = {};
};

struct Floors {
  std::string file;  // for messages
  std::string name;  // of the file, without folder and .json
  std::string description;
  std::vector<Floor> floors;
};

inline constexpr std::uintmax_t max_floors_bytes = std::uintmax_t{64} << 20;  // as of any JSON file

// Reads a floors file (comments allowed). Throws UsageError that lists every error in it: unknown members with the
// nearest name, wrong types, both or neither of at_least and at_most, a unit that does not fit the metric, no source,
// negative limits, an empty list, duplicate floors.
Floors load_floors(const std::filesystem::path& path);
// The same from a file's text; `path` is only its name.
Floors parse_floors(std::string_view text, const std::filesystem::path& path);

// Those in the file of this name if it exists, else in the one that configs/floors has. Throws as load_floors() does.
Floors find_floors(const std::string& word);
// Returns whether the floor is for hardware of one of these names, or for any.
bool is_for(const Floor& floor, const std::vector<std::string>& names);
// Throws UsageError that names the shipped floors for this hardware if the floors are for another, of which none of
// these names is (of GPUs and processors, as hardware_names() in harness/runs/machine.h has them; empty ones are not
// known). Floors that do not say their hardware, and hardware of which no name is known, are never refused.
void require_hardware(const Floors& floors, std::vector<std::string> names);
// The file that it reads.
std::filesystem::path floors_file(const std::string& word);

}  // namespace assay::fitness
