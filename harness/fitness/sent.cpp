#include "harness/fitness/sent.h"

#include "harness/archive/tar.h"
#include "harness/core/error.h"
#include "harness/core/secrets.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::fitness {

namespace {

struct Sent {
  std::set<std::string> hosts, uuids;
  std::int64_t log_lines = 0;

  void add(const std::string& name, const Json& value) {
    if (value.is_structured()) {
      for (const auto& [inner, one] : value.items()) add(value.is_array() ? name : inner, one);
      return;
    }
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) return;
    const auto& text = value.get_ref<const std::string&>();
    if (name == "host" || name == "hosts" || name == "hostname" || name == "hostnames") hosts.insert(text);
    if (name == "uuid") uuids.insert(text);
    if (name == "log") log_lines += 1 + std::ranges::count(text.substr(0, text.size() - 1), '\n');
  }

  void add_text(std::string_view text) {
    try {
      add("", parse_untrusted(text));
    } catch (const Error&) {  // a line cut short by a kill
    }
  }

  void add_file(const TarMember& file) {
    if (file.name.ends_with("/events.txt")) log_lines += std::ranges::count(file.bytes, '\n');
    if (file.name.ends_with(".json")) add_text(file.bytes);
    if (!file.name.ends_with(".jsonl")) return;
    for (std::size_t at = 0; at < file.bytes.size();) {
      const std::size_t end = std::min(file.bytes.find('\n', at), file.bytes.size());
      add_text(std::string_view(file.bytes).substr(at, end - at));
      at = end + 1;
    }
  }
};

}  // namespace

std::string sent_text(std::string_view archive) {
  Sent sent;
  for (const TarMember& file : parse_tar(archive, "the archive")) sent.add_file(file);
  const auto count = [](const auto& all, const char* word) { return plural(all.size(), word); };
  const std::size_t masked = count_masked(archive);
  return fmt::format(
      "holds the names of {}{}, {} and {} of logs; {} masked", count(sent.hosts, "host"),
      sent.hosts.empty() ? "" : fmt::format(" ({})", one_line(first_few({sent.hosts.begin(), sent.hosts.end()}))),
      count(sent.uuids, "UUID"), plural(sent.log_lines, "line"),
      masked == 1 ? "1 value is" : fmt::format("{} values are", masked));
}

}  // namespace assay::fitness
