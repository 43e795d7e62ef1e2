// Rules of diagnosis: data in configs/diagnosis.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// Rules with equal ids are alternatives: the worst of them counts.
struct Rule {
  std::string id;        // "data-starved"
  std::string evidence;  // a name of evidence.h
  double warn = 0;
  std::optional<double> bad;  // absent: never worse than a warning
  // If this evidence is that large, it would itself give the rule's number: the rule is not judged. Empty: none.
  std::string unless;
  double unless_at_least = 0;
  std::string says;  // with {value}
  std::string fix;
  std::string source;
};

// Throws UsageError that names each problem's place in the file.
std::vector<Rule> load_rules(const std::filesystem::path& path);
// Those shipped: configs/diagnosis/rules.json.
const std::vector<Rule>& shipped_rules();

}  // namespace assay::report
