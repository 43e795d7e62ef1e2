#include "harness/machine/problem_kinds.h"

#include "harness/core/error.h"
#include "harness/core/words.h"
#include "harness/json/members.h"

#include <algorithm>
#include <tuple>

namespace assay {

extern const std::string_view problems_text;  // of problems.json

std::optional<Area> area_of(std::string_view code) {
  constexpr std::string_view start = "ASSAY-", digits = "0123456789";
  const auto dash = code.rfind('-');
  if (!code.starts_with(start) || dash < start.size() || code.size() != dash + 4 ||
      code.find_first_not_of(digits, dash + 1) != code.npos)
    return std::nullopt;
  return from_word<Area>(code.substr(start.size(), dash - start.size()));
}

const std::vector<ProblemKind>& problem_kinds() {
  static const std::vector<ProblemKind> kinds = [] {
    auto all = read_text<std::vector<ProblemKind>>(problems_text);
    for (ProblemKind& kind : all)
      if (!kind.code.empty()) kind.area = area_of(kind.code);
    return all;
  }();
  return kinds;
}

const ProblemKind* find_kind(std::string_view id) {
  const auto found = std::ranges::find(problem_kinds(), id, &ProblemKind::id);
  return found == problem_kinds().end() ? nullptr : &*found;
}

Finding finding_of(std::string_view id, std::string seen, std::string device) {
  const ProblemKind* const kind = find_kind(id);
  ASSAY_CHECK(kind, "no kind of problem {}", id);
  return {kind->id, kind->severity, std::move(seen), kind->meaning, kind->fix, std::move(device), kind->area};
}

bool has_fault(const std::vector<Finding>& findings) {
  return std::ranges::find(findings, Severity::fault, &Finding::severity) != findings.end();
}

void sort_by_severity(std::vector<Finding>& findings) {
  std::ranges::stable_sort(
      findings, {}, [](const Finding& one) { return std::tuple(-static_cast<int>(one.severity), one.id, one.device); });
}

Json spoilers_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& one : findings) {
    Json& entry = json.emplace_back();
    entry = {{"id", one.id},
             {"severity", word_of(one.severity)},
             {"seen", one.device.empty() ? one.seen : one.device + ": " + one.seen},
             {"effect", one.meaning},
             {"fix", one.fix},
             {"device", one.device}};
    if (one.area) entry["area"] = word_of(*one.area);
  }
  return json;
}

std::vector<Finding> read_spoilers(const Json& json) {
  std::vector<Finding> findings;
  if (!json.is_array()) return findings;
  for (const Json& from : json) {
    Finding& one = findings.emplace_back();
    one.id = text_member(from, "/id");
    // An unknown word must not make it look harmless.
    one.severity = from_word<Severity>(text_member(from, "/severity")).value_or(Severity::warning);
    one.seen = text_member(from, "/seen");
    one.meaning = text_member(from, "/effect");
    one.fix = text_member(from, "/fix");
    if (one.fix.empty()) one.fix = text_member(from, "/mend");  // its name in older runs
  }
  return findings;
}

}  // namespace assay
