// Messages between supervisor and workers after the handshake: from bytes to lines by the line buffer, then to messages
// and what they hold. The first byte is the number of bytes per read.
#include "harness/run/case_message.h"

#include "cli/catalogue.h"
#include "harness/channel/channel.h"
#include "harness/json/members.h"
#include "harness/trace/trace.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

namespace {

void read(const message::Case& message) {
  const CaseOrder order = order_from(message, cli::catalogue());
  const std::string text = encode(to_message(order, 1));
  const CaseOrder again = order_from(std::get<message::Case>(decode(text)), cli::catalogue());
  expect(encode(to_message(again, 1)) == text, "an order that does not round-trip: " + text.substr(0, 400));
}

void read(const message::Timeline& timeline) {
  for (const trace::Entry& entry : timeline.entries) (void)trace::name_of(entry.category);
}

void read(const message::Finished& finished) {
  const Record merged = merge_parts({finished.record, finished.record});
  JsonPool pool;
  (void)Record::from_text(dump_line(merged.to_json()), pool);
}

void read(const auto&) {}

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
    accepts("", [&] { (void)decode_hello(line); });
    Message one;
    if (!accepts("", [&] { one = decode(line); })) continue;
    const std::string text = encode(one);
    expect(encode(decode(text)) == text, "a message that does not round-trip: " + text.substr(0, 400));
    accepts("", [&] { std::visit([](const auto& known) { read(known); }, one); });
  }
  expect(!fits || input.find('\n', end) == input.npos, "a lost line");
}

}  // namespace assay::fuzz
