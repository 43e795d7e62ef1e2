// One line of records.jsonl: the fast reader agrees with the JSON parser, and records round-trip.
#include "harness/record/record.h"

#include "harness/json/members.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void record(std::string_view input) {
  Record first;
  JsonPool pool;
  if (!accepts("", [&] { first = Record::from_text(input, pool); })) return;
  const Json whole = parse_untrusted(input);  // throws if the fast reader accepted what is not JSON
  expect(whole.is_object() && whole.contains("schema"), "a record without a schema");
  const std::string text = dump_line(first.to_json());
  const Record second = Record::from_text(text, pool);
  expect(dump_line(second.to_json()) == text, "a record that does not round-trip: " + text.substr(0, 400));
  expect(second.identity().text() == first.identity().text(), "a changed identity: " + text.substr(0, 400));
}

}  // namespace assay::fuzz
