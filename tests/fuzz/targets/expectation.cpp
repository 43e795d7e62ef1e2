// What a machine should have, as JSON or as an nhc.conf: it is refused with its place, or compared with a machine.
#include "harness/machine/expectation.h"
#include "harness/machine/nhc.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void expectation(std::string_view input) {
  static const MemoryFile file(folder() / "expected.json");
  static const Root nothing(folder());
  file.write(input);
  if (is_nhc(input))
    for (const std::string& line : read_nhc(input, "nhc.conf", "n1").left_out) expect_message(line, "nhc.conf:");
  Expectation expected;
  if (!accepts(file.path(), [&] { expected = read_expectation(file.path(), nothing); })) return;
  for (const Shortfall& one : shortfalls(expected, Machine(), {}, nothing))
    expect(!one.what.empty() && !one.expected.empty() && !one.found.empty(), "a shortfall that does not say what");
}

}  // namespace assay::fuzz
