// Lines between supervisor and workers, past the channel's door: from bytes to lines by the line buffer, then every
// parser that either end has for them. The first byte is how many bytes come at once.
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
  expect(dump_line(to_message(again, 1)) == text, "an order that changes on its way: " + text.substr(0, 400));
}

void read_timeline(const Json& message) {
  trace::RankTimeline timeline;
  timeline.entries = entries_from(message);
  const std::string text = dump_line(to_message(timeline.entries));
  expect(entries_from(parse_untrusted(text)).size() == timeline.entries.size(), "a timeline that changes on its way");
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
  std::size_t held = 0;
  for (; !input.empty(); input.remove_prefix(std::min(at_once, input.size())))
    if (!buffer.feed(input.substr(0, at_once), lines)) break;
  for (const std::string& line : lines) {
    expect(line.size() <= 4096 && line.find('\n') == line.npos, "a line that is none");
    held += line.size();
    Json json;
    if (!takes("", [&] { json = parse_untrusted(line); })) continue;
    takes("", [&] { read_order(json); });
    takes("", [&] { read_timeline(json); });
    takes("", [&] { read_record(json); });
  }
  expect(lines.empty() || held > 0 || lines.size() > 0, "lost lines");
}

}  // namespace assay::fuzz
