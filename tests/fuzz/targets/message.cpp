// Lines between supervisor and workers after the hello: from bytes to lines by the line buffer, then to messages and
// what they hold. The first byte is the number of bytes that come at once.
#include "harness/run/case_message.h"

#include "cli/catalogue.h"
#include "harness/channel/channel.h"
#include "harness/record/json_reader.h"
#include "harness/trace/trace.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

namespace {

void read(const message::Case& message) {
  const CaseOrder order = order_from(message, cli::catalogue());
  const std::string text = encode(to_message(order, 1));
  const CaseOrder again = order_from(std::get<message::Case>(decode(text)), cli::catalogue());
  expect(encode(to_message(again, 1)) == text, "an order that changes on its way: " + text.substr(0, 400));
}

void read(const message::Timeline& timeline) {
  for (const trace::Entry& entry : timeline.entries) (void)trace::name_of(entry.category);
}

void read(const message::Finished& finished) {
  const Record merged = merge_parts({finished.record, finished.record});
  (void)Record::from_json(merged.to_json());
}

void read(const auto&) {}

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
    takes("", [&] { (void)decode_hello(line); });
    Message one;
    if (!takes("", [&] { one = decode(line); })) continue;
    const std::string text = encode(one);
    expect(encode(decode(text)) == text, "a message that changes on its way: " + text.substr(0, 400));
    takes("", [&] { std::visit([](const auto& known) { read(known); }, one); });
  }
  expect(lines.empty() || held > 0 || lines.size() > 0, "lost lines");
}

}  // namespace assay::fuzz
