#include "harness/fitness/gate/policy.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <vector>

namespace assay::gate {

namespace {

const std::vector<std::string> verdict_names = {"ok", "suspect", "drain"};
constexpr double max_seconds = 366 * 86400.0;

std::optional<Severity> read_severity(const Cursor& at) {
  const auto word = at.choice(verdict_names);
  if (!word) return std::nullopt;
  return *word == "drain" ? Severity::fault : *word == "suspect" ? Severity::warning : Severity::info;
}

std::optional<Escalation> read_suspect(const Cursor& at) {
  static const std::vector<std::string> only_drain = {"drain"};
  if (!at.object()) return std::nullopt;
  at.only({"times", "within", "then"});
  const auto times = at.need("times"), within = at.need("within"), then = at.need("then");
  const auto count = times ? times->integer(1, 1000) : std::nullopt;
  const auto seconds = within ? within->quantity(parse_seconds, 1, max_seconds) : std::nullopt;
  if (then) (void)then->choice(only_drain);
  return count && seconds ? std::optional(Escalation{static_cast<std::size_t>(*count), *seconds}) : std::nullopt;
}

// "5% in 1h", "3 in 1h".
AtMost read_at_most(const Cursor& at) {
  constexpr std::string_view between = " in ";
  AtMost most;
  most.text = at.text().value_or("");
  const auto middle = most.text.find(between);
  const std::string amount(trim(most.text.substr(0, middle)));
  try {
    if (middle == most.text.npos) throw Error("no \" in \"");
    if (amount.ends_with('%'))
      most.share = parse_fraction(amount);
    else
      most.count = static_cast<std::size_t>(parse_integer(amount));
    most.within_seconds = parse_seconds(trim(most.text.substr(middle + between.size())));
    const bool some = most.share ? *most.share > 0 && *most.share <= 1 : most.count >= 1 && most.count <= 1'000'000;
    if (!some || most.within_seconds < 1 || most.within_seconds > max_seconds) throw Error("out of range");
  } catch (const Error&) {
    at.error(fmt::format("{} is not of the form \"5% in 1h\" or \"3 in 1h\"", in_quotes(most.text)));
  }
  return most;
}

}  // namespace

Policy read_policy(const std::filesystem::path& file, const Catalogue& catalogue) {
  Policy policy;
  policy.file = file.string();
  const Json json = read_json(file);
  Problems problems(policy.file);
  const Cursor root(json, problems);
  std::vector<std::string> known = {"schema", "suspect", "at_most", "shared", "hosts"};
  for (const Code& code : catalogue.codes) known.insert(known.end(), {code.id, code.code});
  if (root.object()) {
    root.only(known);
    if (root.find("schema")) (void)root.schema(1);
    if (const auto at = root.find("suspect")) policy.suspect = read_suspect(*at);
    if (const auto at = root.find("at_most")) policy.at_most = read_at_most(*at);
    for (const char* name : {"shared", "hosts"})
      if (const auto at = root.find(name); at && !policy.at_most) at->error("needs \"at_most\", which counts there");
    if (policy.at_most) {
      policy.at_most->shared = root.text_of("shared");
      const auto hosts = root.find("hosts");
      policy.at_most->fleet =
          static_cast<std::size_t>((hosts ? hosts->integer(1, 1'000'000) : std::nullopt).value_or(0));
    }
    for (const auto& [name, at] : root.members())
      if (const Code* code = catalogue.find(name))
        if (const auto severity = read_severity(at)) policy.severities[code->id] = *severity;
  }
  problems.raise();
  return policy;
}

void apply(const Policy& policy, Catalogue& catalogue) {
  for (Code& code : catalogue.codes)
    if (const auto own = policy.severities.find(code.id); own != policy.severities.end()) code.policy = own->second;
}

}  // namespace assay::gate
