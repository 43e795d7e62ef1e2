// A TestSuite as JUnit XML, with the members common to Ant's and Jenkins' schemas.
#include "reports/render/escape.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <cmath>

namespace assay::report {

namespace {

// Text or attribute: like HTML's, without U+FFFE and U+FFFF, which XML 1.0 forbids even if escaped.
std::string xml(std::string_view text) {
  std::string out = html_escape(text);
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (std::size_t at = out.find(none); at != std::string::npos; at = out.find(none, at)) out.erase(at, none.size());
  return out;
}

// Escapes line by line, as escaping would remove line ends.
std::string xml_lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += xml(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string seconds_text(double seconds) { return fmt::format("{:.3f}", std::isfinite(seconds) ? seconds : 0.0); }

}  // namespace

std::string render_junit(const TestSuite& suite) {
  std::size_t failed = 0, skipped = 0;
  double seconds = 0;
  for (const TestCase& test : suite.cases) {
    failed += test.outcome == TestCase::Outcome::failed ? 1 : 0;
    skipped += test.outcome == TestCase::Outcome::skipped ? 1 : 0;
    seconds += std::isfinite(test.seconds) ? test.seconds : 0;
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", suite.cases.size(), failed);
  const std::string name = xml(suite.name);
  out += fmt::format("<testsuites name=\"{}\" {} time=\"{}\">\n", name, counts, seconds_text(seconds));
  out += fmt::format("  <testsuite name=\"{}\" {} skipped=\"{}\" time=\"{}\" hostname=\"{}\"", name, counts, skipped,
                     seconds_text(seconds), suite.hostname.empty() ? "localhost" : xml(suite.hostname));
  if (!suite.timestamp.empty()) out += fmt::format(" timestamp=\"{}\"", xml(suite.timestamp));
  out += ">\n";
  for (const TestCase& test : suite.cases) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{}\">\n", xml(test.classname), xml(test.name),
                       seconds_text(test.seconds));
    if (test.outcome == TestCase::Outcome::failed)
      out += fmt::format("      <failure type=\"floor\" message=\"{}\">{}</failure>\n", xml(test.message),
                         xml_lines(test.detail));
    if (test.outcome == TestCase::Outcome::skipped)
      out += fmt::format("      <skipped message=\"{}\"/>\n", xml(test.message));
    if (!test.output.empty()) out += fmt::format("      <system-out>{}</system-out>\n", xml_lines(test.output));
    out += "    </testcase>\n";
  }
  out += "  </testsuite>\n</testsuites>\n";
  return out;
}

}  // namespace assay::report
