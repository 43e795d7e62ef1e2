#include "harness/fitness/gate/past.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/utc.h"
#include "harness/json/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace assay::gate {

namespace {

constexpr std::uintmax_t max_bytes = 256u << 10;

std::string content(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::status(file, none).type() == std::filesystem::file_type::not_found) return {};
  return read_whole(file, 2 * max_bytes);
}

std::string times(std::size_t count) { return count == 1 ? "once" : fmt::format("{} times", count); }

}  // namespace

std::string Past::text() const {
  std::string text;
  if (suspect > 0) text = "suspect " + times(suspect);
  if (drain > 0) text += (text.empty() ? "drain " : ", drain ") + times(drain);
  return text.empty() ? text : fmt::format("{} in the past {} days", text, past_days);
}

Past read_past(const std::filesystem::path& file, std::time_t now, double seconds) {
  Past past;
  const std::string all = content(file);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    try {
      const Json line = parse_untrusted(std::string_view(all).substr(at, end - at));
      const auto when = parse_utc(text_member(line, "/time"));
      if (when && static_cast<double>(now - *when) <= seconds) {
        past.suspect += text_member(line, "/verdict") == "suspect";
        past.drain += text_member(line, "/verdict") == "drain";
      }
    } catch (const Error&) {  // cut short by a kill
    }
    at = end + 1;
  }
  return past;
}

void remember(const std::filesystem::path& file, std::time_t now, const Decision& decision, const Catalogue& catalogue,
              const std::string& instead) {
  const Severity worst = decision.findings.empty() ? Severity::info : decision.findings.front().severity;
  if (worst == Severity::info) return;
  const Fitness verdict = worst == Severity::fault ? Fitness::fail : Fitness::unsure;
  Json codes = Json::array();
  for (const Finding& finding : decision.findings)
    if (finding.severity != Severity::info)
      codes.push_back({{"code", catalogue.of(finding.id).code}, {"device", finding.device}});
  Json entry = {{"time", utc_text(now)}, {"verdict", name_of(verdict, verdict_words)}, {"findings", std::move(codes)}};
  if (!instead.empty()) entry["instead"] = instead;
  std::string line = dump_line(entry) + "\n";
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  const std::string kept = content(file);
  // A line that was cut short by a kill is not continued.
  if (!kept.empty() && !kept.ends_with('\n')) line.insert(0, "\n");
  // Not synced: a gate must not wait for a busy disk.
  if (kept.size() > max_bytes) {
    NewFile shorter(file);
    shorter.write(kept.substr(kept.find('\n', kept.size() / 2) + 1) + line);
    return shorter.finish(false);
  }
  const Descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (fd < 0) throw Error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  write_all(fd, line, file);
}

}  // namespace assay::gate
