// assay env: describes this machine, what will distort measurements on it, and whether it has what it should.
#include "cli/env.h"
#include "cli/audit_fleet.h"
#include "cli/audit_text.h"
#include "cli/command.h"
#include "harness/audit/bmc.h"
#include "harness/json/members.h"
#include "harness/machine/description.h"
#include "harness/machine/environment.h"
#include "harness/machine/expectation.h"
#include "harness/machine/spoilers.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>

namespace assay::cli {

void Description::add_to(CLI::App& app) {
  app.add_option("--expect", expect, "File that says what the machine should have; exit 1 if it has less")
      ->type_name("FILE")
      ->check(not_empty);
  app.add_option("--expectation", expect_text, "The text of that file, for a host that does not have it")->group("");
  outputs.add_to(app);
}

ExitCode Description::run() const {
  const bool expecting = !expect.empty();
  // Read the user's file first: report a bad file before measuring anything.
  const Root root = user_root();
  const auto expectation = !expecting            ? Expectation()
                           : expect_text.empty() ? read_expectation(expect, root)
                                                 : read_expectation(expect_text, expect, root);
  std::optional<audit::Audit> audited;
  if (audit) audited = audit::audit_machine(root, static_cast<double>(std::time(nullptr)));
  const Machine machine = audited ? audited->machine : probe_machine(root);
  const Json environment = environment_json(machine);
  const std::vector<HardwareSheet>& sheets = shipped_hardware();
  const auto findings = audited ? audited->spoilers : find_spoilers(machine, present_circumstances(root));
  auto missing = expecting ? shortfalls(expectation, machine, sheets, root) : std::vector<Shortfall>();
  if (audited) {
    for (Finding& one : findings_of(expectation, missing)) audited->problems.push_back(std::move(one));
    sort_by_severity(audited->problems);
  }
  const auto lines = expecting ? shortfalls_text(expect, expectation, missing) : std::string();
  const auto unread =
      std::stable_partition(missing.begin(), missing.end(), [](const Shortfall& one) { return !one.unread; });
  const std::vector<Shortfall> not_judged(unread, missing.end());
  missing.erase(unread, missing.end());

  outputs.write_json([&] {
    Json json = {{"schema", 1}};
    json.update(environment);
    json["findings"] = spoilers_json(findings);
    if (audited) {
      AuditedMachine whole = *audited;
      add_identities(whole, root, machine, with_serials);
      if (with_bmc) whole.bmc = audit::bmc_log(root);
      whole.inventory = inventory_of(machine, root);
      json["audit"] = json_of(whole);
    }
    if (expecting) json["expect"] = {{"file", expect}, {"held", missing.empty()}, {"shortfalls", json_of(missing)}};
    if (!not_judged.empty()) json["expect"]["held"] = false, json["expect"]["not_judged"] = json_of(not_judged);
    if (!expectation.left_out.empty()) json["expect"]["not_taken_over"] = expectation.left_out;
    return dump_document(json, 2);
  });
  // The problems of an audit include the findings.
  outputs.print(machine_text(machine, environment["libraries"], sheets) +
                (audited ? audit_text(*audited) : spoilers_text(findings)) + lines);
  if (!missing.empty() || (audited && has_fault(audited->problems))) return ExitCode::failed;
  // An expectation that nobody looked at may not hold.
  return not_judged.empty() && expectation.left_out.empty() ? ExitCode::ok : ExitCode::no_data;
}

Command env_command(CLI::App& root) {
  auto description = std::make_shared<Description>();
  CLI::App* app = root.add_subcommand("env", "Describe this machine, and what will distort measurements on it");
  description->add_to(*app);
  return {app, [description] { return description->run(); }};
}

}  // namespace assay::cli
