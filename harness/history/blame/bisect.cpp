#include "harness/history/blame/bisect.h"

#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace assay::history {

namespace {

// What changed most: an event's worst series, or the suspect itself.
const Json& worst_of(const Json& change) {
  const Json& parts = member(change, "/changes");
  return parts.is_array() && !parts.empty() ? parts.front() : change;
}

// The flags of `ab` that name the figure: as the user says, else of lines the case that changed most.
std::string figure_flags(const Json& change, const BisectCommands& commands) {
  constexpr std::string_view imported = "imported/";
  if (const std::string& metric = commands.metric; !metric.empty())
    return fmt::format(
        " --metric {}{}", shell_word(metric),
        commands.better && metric != "time" && metric != "lines" ? " --better " + word_of(*commands.better) : "");
  const std::string name = text_member(worst_of(change), "/case");
  if (name.empty()) return "";
  const std::string metric = commands.by_metric ? text_member(worst_of(change), "/metric") : "";
  return " --case " + shell_word((name.starts_with(imported) ? name.substr(imported.size()) : name) +
                                 (metric.empty() ? "" : ":" + metric));
}

bool is_commit(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '/';
  }) && text.front() != '-';
}

}  // namespace

void look_up(BisectCommands& commands, const Json& change, std::span<const TrackedSeries> series) {
  const std::string name = text_member(worst_of(change), "/series");
  const auto found = std::ranges::find(series, name, &TrackedSeries::name);
  if (found == series.end()) return;
  const store::SeriesIdentity& id = found->identity;
  commands.better = id.better;
  commands.by_metric = std::ranges::any_of(series, [&](const TrackedSeries& other) {
    return other.identity.key == id.key && other.identity.unit == id.unit && other.identity.better == id.better &&
           other.identity.metric != id.metric;
  });
}

std::vector<std::string> bisect_commands(const Json& change, const BisectCommands& commands) {
  const std::string before = text_member(change, "/from/commit"), after = text_member(change, "/to/commit");
  if (!is_commit(before) || !is_commit(after) || before == after) return {};
  // 125 tells git to skip a commit: it does not build, or too little was measured to say.
  std::string judge = fmt::format("({}) || exit 125; ", commands.build);
  std::vector<std::string> all;
  if (text_member(change, "/kind") == "broke") {
    judge += fmt::format("({}) || exit 1", commands.run);
  } else {
    // A commit with the change is bad to git, and ab exits with 1 where B is slower than A: of a commit that made it
    // faster, B is the build before.
    std::string a = "cd ../assay-good && " + commands.run, b = commands.run;
    if (text_member(change, "/direction") == "faster") std::swap(a, b);
    judge += fmt::format(
        "assay ab --a {} --b {}{}; code=$?; [ $code -ne 3 ] || exit 125; [ $code -le 1 ] || exit 128; "
        "exit $code",
        shell_word(a), shell_word(b), figure_flags(change, commands));
    all = {fmt::format("git worktree add ../assay-good {}", before),
           fmt::format("(cd ../assay-good && {})", commands.build)};
  }
  all.push_back(fmt::format("git bisect start {} {}", after, before));
  all.push_back(fmt::format("git bisect run sh -c {}", shell_word(judge)));
  return all;
}

}  // namespace assay::history
