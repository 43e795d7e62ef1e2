#include "harness/gate/catalogue.h"

#include "harness/core/error.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>

namespace assay::gate {

namespace {

const std::regex& code_form() {
  static const std::regex form("ASSAY-(GPU|CPU|MEM|NET|DISK|SYS)-[0-9]{3}");
  return form;
}

std::string text_of(const Cursor& at, std::string_view name, std::string otherwise = {}) {
  const auto member = at.find(name);
  return member ? member->text().value_or("") : otherwise;
}

Code read_code(const Cursor& at) {
  static const std::vector<std::string> names{"code", "id", "action", "meaning", "test", "at_most", "inject"};
  static const std::vector<std::string> actions{"isolate", "reset", "monitor"}, severities{"info", "warning", "fault"};
  Code code;
  at.only(names);
  if (const auto member = at.need("code")) code.code = member->text().value_or("");
  if (!std::regex_match(code.code, code_form())) at.error("its code is not of the form ASSAY-AREA-NNN");
  if (const auto member = at.need("id")) code.id = member->text().value_or("");
  if (const auto member = at.need("action")) code.action = member->choice(actions).value_or("");
  code.meaning = text_of(at, "meaning");
  code.test = text_of(at, "test", "audit");
  if (const auto member = at.find("at_most")) code.at_most = severity_from(member->choice(severities).value_or(""));
  if (const auto member = at.find("inject")) code.inject = member->text().value_or("");
  return code;
}

Test read_test(const Cursor& at) {
  static const std::vector<std::string> names{"name",  "plan",     "cases", "device", "seconds", "shared",
                                              "alone", "required", "wrong", "slow",   "hung",    "broke"};
  static const std::vector<std::string> devices{"cpu", "cuda", "host"};
  Test test;
  at.only(names);
  if (const auto member = at.need("name")) test.name = member->text().value_or("");
  test.plan = text_of(at, "plan");
  test.cases = text_of(at, "cases");
  if (const auto member = at.need("device")) test.device = member->choice(devices).value_or("");
  if (const auto member = at.need("seconds")) test.seconds = member->number(0.01, 3600).value_or(1);
  if (const auto member = at.find("shared")) test.shared = member->flag().value_or(false);
  if (const auto member = at.find("alone")) test.alone = member->flag().value_or(false);
  if (const auto member = at.find("required")) test.required = member->flag().value_or(false);
  test.wrong = text_of(at, "wrong");
  test.slow = text_of(at, "slow");
  test.hung = text_of(at, "hung");
  test.broke = text_of(at, "broke");
  return test;
}

void check_names(const Catalogue& catalogue, const Cursor& at) {
  std::set<std::string> seen;
  for (const Code& code : catalogue.codes) {
    if (!seen.insert(code.code).second || !seen.insert(code.id).second)
      at.error(fmt::format("{} or its id {} stands there twice", code.code, code.id));
    if (std::none_of(catalogue.tests.begin(), catalogue.tests.end(),
                     [&](const Test& test) { return test.name == code.test; }))
      at.error(fmt::format("{}: no test {}", code.code, code.test));
  }
  for (const Test& test : catalogue.tests)
    for (const std::string& id : {test.wrong, test.slow, test.hung, test.broke})
      if (!id.empty() && !seen.contains(id)) at.error(fmt::format("test {}: no code with the id {}", test.name, id));
  for (const std::string_view id :
       {unlisted, std::string_view("out-of-memory"), std::string_view("cpu-quota"), std::string_view("gpu-slowed")})
    if (!seen.contains(std::string(id))) at.error(fmt::format("no code with the id {}", id));
}

}  // namespace

std::string_view name_of(Severity severity) {
  return std::array<std::string_view, 3>{"info", "warning", "fault"}[static_cast<std::size_t>(severity)];
}

Severity severity_from(std::string_view name) {
  return name == "fault" ? Severity::fault : name == "warning" ? Severity::warning : Severity::info;
}

const Code* Catalogue::find(std::string_view word) const {
  const auto found =
      std::find_if(codes.begin(), codes.end(), [&](const Code& one) { return one.id == word || one.code == word; });
  return found == codes.end() ? nullptr : &*found;
}

const Code& Catalogue::of(std::string_view id) const {
  const Code* code = find(id);
  return code ? *code : *find(unlisted);
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
    if (test.device != "cuda" || gpus) chosen.push_back(&test);
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Test* a, const Test* b) {
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

Catalogue load_catalogue(const std::filesystem::path& file) {
  static const std::vector<std::string> names{"schema", "description", "codes", "tests"};
  const Json json = read_json(file);
  Problems problems(file.string());
  const Cursor root(json, problems);
  Catalogue catalogue;
  if (root.object() && root.schema(1)) {
    root.only(names);
    if (const auto list = root.need("tests"))
      for (const Cursor& one : list->elements()) catalogue.tests.push_back(read_test(one));
    if (const auto list = root.need("codes"))
      for (const Cursor& one : list->elements()) catalogue.codes.push_back(read_code(one));
    if (problems.empty()) check_names(catalogue, root);
  }
  problems.raise();
  return catalogue;
}

}  // namespace assay::gate
