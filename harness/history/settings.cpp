#include "harness/history/settings.h"

#include "harness/core/error.h"
#include "harness/history/repository.h"

#include <fmt/format.h>

namespace assay::history {

namespace {

struct SettingName {
  const char* name;
  const char* none;  // the word for the usual
};

// What is in force of one setting.
std::string setting_in_force(const std::string& verb, const store::Store& store, const SettingName& what,
                             const std::string& given, OtherSettings other) {
  const std::string known = store.setting(what.name);
  const std::string wanted = given == what.none ? "" : given;
  if (given.empty() || wanted == known) return known;
  if (other == OtherSettings::refused && !known.empty())
    throw UsageError(
        fmt::format("{}: --{} {}: this history is judged with --{} {} since its first check: leave the flag out, or "
                    "change it for good with `assay history check --again --{} {}`",
                    verb, what.name, given, what.name, known, what.name, given));
  return wanted;
}

}  // namespace

Options with_settings(const std::string& verb, const store::Store& store, Options options, const JudgeSettings& given,
                      OtherSettings other) {
  options.split_by = setting_in_force(verb, store, {"split-by", "none"}, given.split_by, other);
  if (setting_in_force(verb, store, {"order", "night"}, given.order, other) != "commit") return options;
  std::string why;
  const auto repository = Repository::of(".", &why);
  if (!repository)
    throw UsageError(fmt::format("{}: --order commit: use it in the repository that is measured: {}", verb, why));
  options.commits = repository->first_parents();
  return options;
}

void keep_settings(store::Store& store, const Options& options) {
  const auto keep = [&](const char* name, const std::string& value) {
    if (store.setting(name) != value) store.set(name, value);
  };
  keep("split-by", options.split_by);
  keep("order", options.commits.empty() ? "" : "commit");
}

}  // namespace assay::history
