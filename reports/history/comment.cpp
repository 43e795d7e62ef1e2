// The comment of a night, for a commit or an issue: what became slower, since when, and what to do, in 20 lines.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/history/blame/bisect.h"
#include "harness/history/event_json.h"
#include "harness/history/renames.h"
#include "harness/history/series/order.h"
#include "harness/history/sight.h"
#include "harness/json/json.h"
#include "reports/history/document.h"
#include "reports/render/escape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace assay::history {

namespace {

constexpr std::size_t max_events = 3, max_cases = 3, max_text = 160;

std::string escaped(const std::string& text) { return report::markdown_escape(one_line(text, max_text)); }

std::string speed_text(double log_ratio) {
  const double percent = 100 * std::expm1(log_ratio);
  return std::abs(percent) < 10 ? fmt::format("{:+.1f} %", percent) : fmt::format("{:+.0f} %", percent);
}

bool is_hash(const std::string& text) {
  constexpr std::size_t shortest = 7;
  return text.size() >= shortest && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The speed of the last nights, between the lowest and the highest of them.
std::string sparkline(const TrackedSeries& series) {
  static constexpr std::array<const char*, 8> marks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t nights = 30;
  const auto& values = series.track.values;
  const std::span<const double> last = std::span(values).last(std::min(values.size(), nights));
  const auto [low, high] = std::ranges::minmax(last);
  std::string line;
  for (const double value : last) {
    const double place = high > low ? (value - low) / (high - low) : 0.5;
    line += marks[std::min<std::size_t>(marks.size() - 1, static_cast<std::size_t>(place * double{marks.size()}))];
  }
  return line;
}

class Comment {
 public:
  Comment(const History& history, const Outcome& outcome, const CommentStyle& style)
      : history_(history), outcome_(outcome), style_(style) {}

  std::string text() {
    std::vector<const Event*> alarms;
    for (const Event& event : history_.found.events)
      if (event.alarms()) alarms.push_back(&event);
    // What no earlier check reported comes first.
    std::ranges::stable_sort(alarms, [](const Event* a, const Event* b) { return a->fresh > b->fresh; });
    if (alarms.empty()) calm();
    for (std::size_t i = 0; i < std::min(alarms.size(), max_events); ++i) event(*alarms[i]);
    foot(alarms);
    return std::move(text_);
  }

 private:
  void line(const std::string& text) { text_ += text + "\n"; }
  void item(const std::string& text) { line("- " + text); }

  void calm() {
    const bool green = outcome_.code == ExitCode::ok && !sight_of(history_).is_blind();
    std::string why = outcome_.why.empty() ? sight_of(history_).text() : outcome_.why;
    if (green || why.empty()) why = "nothing became slower";
    line(fmt::format("**{}** {}", green ? "GREEN" : "AMBER", escaped(why)));
    line("");
  }

  std::string commit_text(const std::string& commit) const {
    const std::string shown = commit.substr(0, 12);
    if (!is_hash(commit) || style_.commit_url.empty()) return escaped(shown);
    std::string url = style_.commit_url;
    url.replace(url.find(commit_place), std::string_view(commit_place).size(), commit);
    return fmt::format("[{}]({})", shown, url);
  }

  // "3f9c2ab12345 "cache keys" (2 nights ago)".
  std::string since(const Event& event, const Json& json) const {
    const std::string culprit_hash = event.culprit.substr(0, event.culprit.find(' '));
    const std::string before = text_member(json, "/from/commit"), after = text_member(json, "/to/commit");
    std::string text;
    if (is_hash(culprit_hash))
      text = commit_text(culprit_hash) + escaped(event.culprit.substr(culprit_hash.size()));
    else if (!event.culprit.empty())
      text = escaped(event.culprit);
    else if (!after.empty() && after != before)
      text = commit_text(after) + (before.empty() ? "" : fmt::format(" (after {})", commit_text(before)));
    else
      text = text_member(json, "/to/night");
    const Night nights =
        day_of(history_.contents, *history_.arrival.last) - day_of(history_.contents, event.first_after);
    return text + (nights <= 0 ? ", tonight" : nights == 1 ? ", 1 night ago" : fmt::format(", {} nights ago", nights));
  }

  std::string what(const Event& event) const {
    if (event.kind == EventKind::broke) return fmt::format("{} broke ({})", event.subject, event.detail);
    if (!event.shift) return event.subject + " changed";
    const bool count = !event.series.empty() && history_.series[event.series.front().series].track.count;
    if (count && !event.detail.empty()) return event.subject + ": " + event.detail;
    std::string text = fmt::format("{} is {} slower", event.subject, speed_text(*event.shift).substr(1));
    if (event.kind == EventKind::changed_protocol) text += ", measured in another way,";
    return text;
  }

  std::string name_of_series(const Event& event, std::size_t index) const {
    const TrackedSeries& one = history_.series[index];
    std::string name = event.machines.size() > 1 ? one.name : one.title;
    constexpr std::string_view imported = "imported/";
    return name.starts_with(imported) ? name.substr(imported.size()) : name;
  }

  void cases(const Event& event) {
    std::vector<std::string> parts;
    for (const EventSeries& one : event.series) {
      if (parts.size() == max_cases) break;
      std::string part = fmt::format("{} {}", escaped(name_of_series(event, one.series)), speed_text(one.shift));
      if (parts.empty())
        part += fmt::format(" ({} .. {})", speed_text(one.interval.low), speed_text(one.interval.high));
      parts.push_back(std::move(part));
    }
    const std::size_t more = event.series.size() - parts.size();
    item(fmt::format("{}: {}{} {}", plural(static_cast<std::int64_t>(event.series.size()), "figure"),
                     fmt::join(parts, ", "), more > 0 ? fmt::format(", {} more", more) : "",
                     sparkline(history_.series[event.series.front().series])));
  }

  // Whether the same work takes other instructions, by the case's own count or that of the whole command:
  // "instructions +31 %: the code".
  std::string counted(const Event& event) const {
    const store::SeriesIdentity& id = history_.series[event.series.front().series].identity;
    for (const TrackedSeries& one : history_.series) {
      const bool whole = one.identity.key == "imported/whole_command";
      if (!one.track.count || one.identity.metric != "instructions" || one.identity.machine != id.machine ||
          (one.identity.key != id.key && !whole))
        continue;
      const auto before = one.at_or_before(event.last_before), after = one.at_or_after(event.first_after);
      if (!before || !after) continue;
      constexpr double exact = 0.001;
      const double more = one.track.values[*before] - one.track.values[*after];  // more instructions are slower
      return std::abs(more) < exact ? "instructions as before: not the code's work"
                                    : fmt::format("instructions {}: the code", speed_text(more));
    }
    return "";
  }

  void measured(const Event& event) {
    std::string text;
    for (const std::string& said : history_.tonight)
      if (said.starts_with(event.id + ": ") && said.find(": since ") == said.npos)
        text += (text.empty() ? "measured tonight: " : " ") + escaped(said.substr(event.id.size() + 2));
    if (text.empty() && event.confirmed) text = "confirmed by measuring both builds in turn";
    if (const std::string count = counted(event); !count.empty()) text += (text.empty() ? "" : "; ") + count;
    if (!text.empty()) item(text);
  }

  // A command of the reader's shell, in which nothing is a mention or a link.
  static std::string code(const std::string& command) {
    return command.find_first_of("`\n") == command.npos ? "`" + report::printable(command) + "`" : escaped(command);
  }

  void to_do(const Event& event, const Json& json) {
    const std::string hash = event.culprit.substr(0, event.culprit.find(' '));
    std::string text;
    if (is_hash(hash))
      text = fmt::format("revert {} · ", hash.substr(0, 12));
    else if (!bisect_commands(json).empty())
      text = fmt::format("find the commit: {} · ",
                         code(fmt::format("assay history bisect {} --build {} --run {}", event.id,
                                          style_.build.empty() ? "BUILD" : short_shell_word(style_.build),
                                          style_.run.empty() ? "COMMAND" : short_shell_word(style_.run))));
    item(fmt::format("do: {}accept: {}", text, code(fmt::format("assay history ack {} --reason WHY", event.id))));
  }

  void event(const Event& event) {
    const Json json = event_json(event, history_);
    line(fmt::format("**{}** {} since {} · event {}", event.fresh ? "RED" : "STILL RED", escaped(what(event)),
                     since(event, json), event.id));
    if (!event.series.empty()) {
      cases(event);
      measured(event);
    }
    if (event.culprit.empty() && !event.blame.sentence.empty()) item("cause: " + escaped(event.blame.sentence));
    to_do(event, json);
    line("");
  }

  void foot(const std::vector<const Event*>& alarms) {
    std::set<std::size_t> loud;
    std::vector<std::string> faster, parts;
    for (const Event* one : alarms)
      for (const EventSeries& part : one->series) loud.insert(part.series);
    for (const Event& one : history_.found.events)
      if (one.kind == EventKind::faster && one.state == EventState::open) faster.push_back(one.id);
    if (alarms.size() > max_events) {
      std::vector<std::string> more;
      for (std::size_t i = max_events; i < alarms.size(); ++i) more.push_back(alarms[i]->id);
      parts.push_back(fmt::format("more that is red: {}", first_few(more, 6)));
    }
    parts.push_back(
        fmt::format("quiet {} series", format_number(static_cast<double>(history_.series.size() - loud.size()), 0)));
    if (const Sight sight = sight_of(history_); sight.blind > 0)
      parts.push_back(
          fmt::format("blind to {:g} % in {}{}", 100 * blind_step, sight.blind,
                      sight.young > 0 ? fmt::format(" ({} have fewer than {} nights)", sight.young, min_nights) : ""));
    parts.push_back(fmt::format("missing {}", history_.arrival.expected - history_.arrival.arrived));
    if (!faster.empty()) parts.push_back(fmt::format("faster {} ({})", faster.size(), first_few(faster, 3)));
    if (const auto suspects = history_.found.suspects.size(); suspects > 0)
      parts.push_back(fmt::format("suspects {}", suspects));
    if (const auto renamed = seeming_renames(history_); !renamed.empty())
      parts.push_back(fmt::format("renamed? {}", code(alias_command(renamed.front()))));
    if (history_.arrival.last) parts.push_back("newest " + night_text(history_.contents, *history_.arrival.last));
    parts.push_back(promise(history_.options));
    line(fmt::format("{}", fmt::join(parts, " · ")));
  }

  const History& history_;
  const Outcome& outcome_;
  const CommentStyle& style_;
  std::string text_;
};

}  // namespace

std::string night_comment(const History& history, const Outcome& outcome, const CommentStyle& style) {
  return Comment(history, outcome, style).text();
}

}  // namespace assay::history
