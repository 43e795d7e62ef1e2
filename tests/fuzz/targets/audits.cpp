// What a host printed of its audit: whatever it is, the comparison of hosts can be written.
#include "reports/hosts/audits.h"

#include "harness/json/members.h"
#include "reports/render/render.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void audits(std::string_view input) {
  const report::AuditedHost first = report::read_audit("n1", input);
  expect((first.state == report::AuditState::ok) == first.error.empty(), "an error without a reason, or the reverse");
  const std::vector<report::AuditedHost> hosts = {
      first, report::read_audit("n2", R"({"audit":{"problems":[],"facts":{"driver":"570"}}})")};
  const std::vector<report::Drift> drift = report::drift_of(hosts);
  for (const char c : report::render_terminal(report::audit_document(hosts, drift), {}))
    expect(c == '\n' || static_cast<unsigned char>(c) >= 0x20, "a control character for the terminal");
  (void)report::render_html(report::audit_document(hosts, drift));
  // What is written can be read again, but for what was cut.
  const Json json = parse_untrusted(dump_line(report::audits_json(hosts, drift)));
  expect(json["hosts"].size() == 2, "a host is missing");
  expect(report::audit_code(hosts) == ExitCode::failed || first.count("fault") == 0, "a fault without exit code 1");
}

}  // namespace assay::fuzz
