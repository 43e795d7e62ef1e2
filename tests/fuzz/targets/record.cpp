// One line of records.jsonl: read as JSON proper is read, and unchanged by writing and reading it again.
#include "harness/record/record.h"

#include "harness/record/json_reader.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void record(std::string_view input) {
  Record first;
  JsonPool pool;
  if (!takes("", [&] { first = Record::from_text(input, pool); })) return;
  const Json whole = parse_untrusted(input);  // throws where the quicker reader took what is no JSON
  expect(whole.is_object() && whole.contains("schema"), "a record without a schema");
  const std::string text = dump_line(first.to_json());
  const Record second = Record::from_text(text, pool);
  expect(dump_line(second.to_json()) == text, "a record that changes when it is written: " + text.substr(0, 400));
  expect(second.identity().text() == first.identity().text(), "another identity: " + text.substr(0, 400));
}

}  // namespace assay::fuzz
