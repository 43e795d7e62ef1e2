#include "harness/fitness/gate/catalogue.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace assay::gate {

namespace {

// A code that the file itself brings.
Code read_code(const Cursor& at) {
  static const std::vector<std::string> actions{"isolate", "reset", "monitor"}, severities = all_words<Severity>();
  Code code;
  at.only({"code", "id", "action", "meaning", "test", "at_most", "inject"});
  code.code = at.need_text("code");
  code.area = area_of(code.code);
  if (!code.area) at.error("its code is not of the form ASSAY-AREA-NNN");
  code.id = at.need_text("id");
  if (const auto member = at.need("action")) code.action = member->choice(actions).value_or("");
  const ProblemKind* const kind = find_kind(code.id);
  if (kind) code.meaning = kind->meaning;
  if (const auto member = at.find("meaning")) code.meaning = member->text().value_or("");
  if (const auto member = at.find("test")) code.test = member->text().value_or("");
  if (const auto member = at.find("at_most"))
    code.at_most = from_word<Severity>(member->choice(severities).value_or("")).value_or(Severity::info);
  if (const auto member = at.find("inject")) code.inject = member->text().value_or("");
  return code;
}

// Those of the table, with the tests that find them and the faults by which they are caused.
std::vector<Code> codes_of(const std::vector<Test>& tests, const std::filesystem::path& faults) {
  std::vector<Code> codes;
  for (const ProblemKind& kind : problem_kinds())
    if (!kind.code.empty()) codes.push_back({kind});
  const auto set = [&](std::string_view id, const std::string& test, const std::optional<std::string>& inject) {
    for (Code& code : codes)
      if (code.id == id) code.test = test, code.inject = inject;
  };
  const Json of_files = std::filesystem::exists(faults) ? read_json(faults) : Json::object();
  for (const auto& [id, files] : member(of_files, "/faults").items()) set(id, "audit", "files");
  for (const Test& test : tests)
    for (const auto& [id, inject] : test.finds) set(id, test.name, inject);
  return codes;
}

Test read_test(const Cursor& at) {
  static const std::vector<std::string> devices{"cpu", "cuda", "host", "job"};
  Test test;
  at.only({"name", "plan", "cases", "device", "seconds", "shared", "alone", "required", "wrong", "slow", "hung",
           "broke", "finds"});
  test.name = at.need_text("name");
  test.plan = at.text_of("plan");
  test.cases = at.text_of("cases");
  if (const auto member = at.need("device")) test.device = member->choice(devices).value_or("");
  if (const auto member = at.need("seconds")) test.seconds = member->number(0.01, 3600).value_or(1);
  if (const auto member = at.find("shared")) test.shared = member->flag().value_or(false);
  if (const auto member = at.find("alone")) test.alone = member->flag().value_or(false);
  if (const auto member = at.find("required")) test.required = member->flag().value_or(false);
  test.wrong = at.text_of("wrong");
  test.slow = at.text_of("slow");
  test.hung = at.text_of("hung");
  test.broke = at.text_of("broke");
  if (const auto finds = at.find("finds"))
    for (const auto& [id, fault] : finds->members())
      test.finds.emplace_back(id, fault.json().is_null() ? std::nullopt : fault.text());
  return test;
}

Profile read_profile(const std::string& name, const Cursor& at, const Catalogue& catalogue) {
  Profile profile{.name = name};
  std::vector<std::string> known;
  for (const Test& test : catalogue.tests) known.push_back(test.name);
  at.only({"budget", "tests"});
  if (const auto budget = at.need("budget")) profile.budget = budget->quantity(parse_seconds, 0.01, 86400).value_or(1);
  if (const auto tests = at.find("tests"))
    for (const Cursor& test : tests->elements())
      if (const auto word = test.choice(known)) profile.tests.insert(*word);
  return profile;
}

void check_names(const Catalogue& catalogue, const Cursor& at) {
  std::set<std::string> seen;
  for (const Code& code : catalogue.codes) {
    if (!seen.insert(code.code).second || !seen.insert(code.id).second)
      at.error(fmt::format("{} or its id {} stands there twice", code.code, code.id));
    if (std::ranges::none_of(catalogue.tests, [&](const Test& test) { return test.name == code.test; }))
      at.error(fmt::format("{}: no test {}", code.code, code.test));
  }
  for (const Test& test : catalogue.tests)
    for (const std::string& id : {test.wrong, test.slow, test.hung, test.broke})
      if (!id.empty() && !seen.contains(id)) at.error(fmt::format("test {}: no code with the id {}", test.name, id));
  for (const Test& test : catalogue.tests)
    for (const auto& [id, fault] : test.finds)
      if (!seen.contains(id)) at.error(fmt::format("test {} finds {}: no code with that id", test.name, id));
  for (const std::string_view id :
       {unlisted, std::string_view("out-of-memory"), std::string_view("cpu-quota"), std::string_view("gpu-slowed")})
    if (!seen.contains(std::string(id))) at.error(fmt::format("no code with the id {}", id));
}

}  // namespace

const Code* Catalogue::find(std::string_view word) const {
  const auto found = std::ranges::find_if(codes, [&](const Code& one) { return one.id == word || one.code == word; });
  return found == codes.end() ? nullptr : &*found;
}

const Code& Catalogue::of(std::string_view id) const {
  const Code* code = find(id);
  return code ? *code : *find(unlisted);
}

const Code& Catalogue::to_inject(const std::string& word) const {
  const Code* code = find(word);
  if (code && code->inject) return *code;
  if (code) throw UsageError(fmt::format("gate: --inject {}: this one cannot be injected", in_quotes(word)));
  std::vector<std::string> known;
  for (const Code& one : codes)
    if (one.inject) known.push_back(one.id);
  throw UsageError(fmt::format("gate: --inject {}: unknown fault{}; assay gate --list shows all", in_quotes(word),
                               suggestion(word, known)));
}

const Test& Catalogue::test(std::string_view name) const {
  for (const Test& test : tests)
    if (test.name == name) return test;
  throw Error(fmt::format("gate: no test {}", name));
}

std::vector<const Test*> Catalogue::choose(double seconds, bool gpus) const {
  std::map<std::string_view, double> codes_of;
  for (const Code& code : codes) ++codes_of[code.test];
  std::vector<const Test*> chosen;
  for (const Test& test : tests)
    if (!test.left_out && test.device != "job" && (test.device != "cuda" || gpus)) chosen.push_back(&test);
  std::ranges::stable_sort(chosen, [&](const Test* a, const Test* b) {
    if (a->required != b->required) return a->required;
    return codes_of[a->name] / a->seconds > codes_of[b->name] / b->seconds;
  });
  std::erase_if(chosen, [&](const Test* test) {
    if (test->seconds > seconds) return true;
    seconds -= test->seconds;
    return false;
  });
  return chosen;
}

const Profile& Catalogue::use_profile(const std::string& name) {
  std::vector<std::string> known;
  for (const Profile& one : profiles) known.push_back(one.name);
  const auto profile = std::ranges::find(profiles, name, &Profile::name);
  if (profile == profiles.end())
    throw UsageError(fmt::format("gate: --profile {}: unknown profile{}", in_quotes(name), suggestion(name, known)));
  for (Test& test : tests) test.left_out = !profile->tests.empty() && !profile->tests.contains(test.name);
  return *profile;
}

Json Catalogue::codes_json() const {
  Json rows = Json::array();
  for (const Code& code : codes)
    rows.push_back({{"code", code.code},
                    {"id", code.id},
                    {"meaning", code.meaning},
                    {"action", code.action},
                    {"test", code.test},
                    {"seconds", test(code.test).seconds},
                    {"injectable", code.inject.has_value()}});
  return rows;
}

Catalogue load_catalogue(const std::filesystem::path& file) {
  return read_strictly(file, 1, {"schema", "description", "codes", "tests", "profiles"}, [&](const Cursor& root) {
    Catalogue catalogue;
    if (const auto list = root.need("tests"))
      for (const Cursor& one : list->elements()) catalogue.tests.push_back(read_test(one));
    if (const auto list = root.find("profiles"))
      for (const auto& [name, one] : list->members()) catalogue.profiles.push_back(read_profile(name, one, catalogue));
    if (const auto list = root.find("codes"))
      for (const Cursor& one : list->elements()) catalogue.codes.push_back(read_code(one));
    else
      catalogue.codes = codes_of(catalogue.tests, file.parent_path() / "gate-faults.json");
    if (root.problems().empty()) check_names(catalogue, root);
    return catalogue;
  });
}

}  // namespace assay::gate
