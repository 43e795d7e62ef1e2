// assay env: describes this machine, what will distort measurements on it, and whether it has what it should.
#include "cli/env.h"
#include "cli/audit_fleet.h"
#include "cli/audit_text.h"
#include "cli/command.h"
#include "harness/json/members.h"
#include "harness/machine/description.h"
#include "harness/machine/environment.h"
#include "harness/machine/expectation.h"
#include "harness/machine/spoilers.h"

#include <ctime>
#include <memory>
#include <optional>

namespace assay::cli {

void Description::add_to(CLI::App& app) {
  app.add_option("--expect", expect, "File that says what the machine should have; exit 1 if it has less")
      ->type_name("FILE")
      ->check(not_empty);
  outputs.add_to(app);
}

ExitCode Description::run() const {
  const bool expecting = !expect.empty();
  // Read the user's file first: report a bad file before measuring anything.
  const Root root = user_root();
  const auto expectation = expecting ? read_expectation(expect, root) : Expectation();
  std::optional<audit::Audit> audited;
  if (audit) audited = audit::audit_machine(root, static_cast<double>(std::time(nullptr)));
  const Machine machine = audited ? audited->machine : probe_machine(root);
  const Json environment = environment_json(machine);
  const std::vector<HardwareSheet>& sheets = shipped_hardware();
  const auto findings = audited ? audited->spoilers : find_spoilers(machine, present_circumstances(root));
  const auto missing = expecting ? shortfalls(expectation, machine, sheets, root) : std::vector<Shortfall>();

  outputs.write_json([&] {
    Json json = {{"schema", 1}};
    json.update(environment);
    json["findings"] = spoilers_json(findings);
    if (audited) {
      AuditedMachine whole = *audited;
      add_identities(whole, root, machine, with_serials);
      json["audit"] = json_of(whole);
    }
    if (expecting) json["expect"] = {{"file", expect}, {"held", missing.empty()}, {"shortfalls", json_of(missing)}};
    if (!expectation.left_out.empty()) json["expect"]["not_taken_over"] = expectation.left_out;
    return dump_document(json, 2);
  });
  // The problems of an audit include the findings.
  outputs.print(machine_text(machine, environment["libraries"], sheets) +
                (audited ? audit_text(*audited) : spoilers_text(findings)) +
                (expecting ? shortfalls_text(expect, expectation, missing) : ""));
  if (!missing.empty() || (audited && has_fault(audited->problems))) return ExitCode::failed;
  // An expectation that nobody looked at may not hold.
  return expectation.left_out.empty() ? ExitCode::ok : ExitCode::no_data;
}

Command env_command(CLI::App& root) {
  auto description = std::make_shared<Description>();
  CLI::App* app = root.add_subcommand("env", "Describe this machine, and what will distort measurements on it");
  description->add_to(*app);
  return {app, [description] { return description->run(); }};
}

}  // namespace assay::cli
