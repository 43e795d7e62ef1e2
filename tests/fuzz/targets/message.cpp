// Messages between supervisor and workers after the handshake: from bytes to lines by the line buffer, then every
// parser of either end. The first byte is the number of bytes per read.
#include "harness/run/messages.h"

#include "cli/catalogue.h"
#include "harness/channel/channel.h"
#include "harness/record/json_reader.h"
#include "harness/trace/trace.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

namespace {

void read_order(const Json& message) {
  const CaseOrder order = order_from(message, cli::catalogue());
  const std::string text = dump_line(to_message(order, 1));
  const CaseOrder again = order_from(parse_untrusted(text), cli::catalogue());
  expect(dump_line(to_message(again, 1)) == text, "an order that does not round-trip: " + text.substr(0, 400));
}

void read_timeline(const Json& message) {
  trace::RankTimeline timeline;
  timeline.entries = entries_from(message);
  const std::string text = dump_line(to_message(timeline.entries));
  expect(entries_from(parse_untrusted(text)).size() == timeline.entries.size(), "a timeline that does not round-trip");
  for (const trace::Entry& entry : timeline.entries) (void)trace::name_of(entry.category);
}

void read_record(const Json& message) {
  const JsonReader reader(message, "");
  if (!reader.has("record")) return;
  Record part = Record::from_json(reader.object("record"));
  const Record merged = merge_parts({part, part});
  (void)Record::from_json(merged.to_json());
}

}  // namespace

void message(std::string_view input) {
  if (input.empty()) return;
  const std::size_t at_once = static_cast<unsigned char>(input[0]) + 1;
  input.remove_prefix(1);
  LineBuffer buffer(4096);
  std::vector<std::string> lines;
  bool fits = true;
  for (std::size_t at = 0; fits && at < input.size(); at += at_once)
    fits = buffer.feed(input.substr(at, at_once), lines);
  std::size_t end = 0;
  for (const std::string& line : lines) {
    expect(line.size() <= 4096, "a line over the limit");
    expect(input.substr(end).starts_with(line + "\n"), "a line that was not sent");
    end += line.size() + 1;
    Json json;
    if (!accepts("", [&] { json = parse_untrusted(line); })) continue;
    accepts("", [&] { read_order(json); });
    accepts("", [&] { read_timeline(json); });
    accepts("", [&] { read_record(json); });
  }
  expect(!fits || input.find('\n', end) == input.npos, "a lost line");
}

}  // namespace assay::fuzz
