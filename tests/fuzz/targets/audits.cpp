// What a host printed of its audit: whatever it is, the comparison of hosts can be written.
#include "reports/hosts/audits.h"

#include "harness/fitness/cluster/majority.h"
#include "harness/json/members.h"
#include "reports/render/render.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void audits(std::string_view input) {
  const fitness::AuditedHost first = fitness::read_audit("n1", input);
  expect((first.state == fitness::AuditState::ok) == first.error.empty(), "an error without a reason, or the reverse");
  fitness::AuditedFleet fleet;
  fleet.hosts = {first, fitness::read_audit("n2", R"({"audit":{"problems":[],"facts":{"driver":"570"}}})")};
  fleet.drift = fitness::drift_of(fleet.hosts);
  for (const char c : report::render_terminal(report::audit_document(fleet), {}))
    expect(c == '\n' || static_cast<unsigned char>(c) >= 0x20, "a control character for the terminal");
  (void)report::render_html(report::audit_document(fleet));
  const std::string text = dump_line(json_of(fleet));
  expect(dump_line(json_of(read_text<fitness::AuditedFleet>(text))) == text, "what is written is read otherwise");
  (void)fitness::majority_of(fleet.hosts);
  expect(fleet.code() == ExitCode::failed || first.count(Severity::fault) == 0, "a fault without exit code 1");
}

}  // namespace assay::fuzz
