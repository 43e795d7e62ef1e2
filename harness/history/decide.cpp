#include "harness/history/decide.h"

#include "harness/core/host.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/history/events/events.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <set>
#include <vector>

namespace assay::history {

namespace {

using store::DecisionKind;

std::string user_name() {
  if (const char* user = std::getenv("USER"); user && *user) return user;
  const passwd* entry = getpwuid(getuid());
  return entry ? entry->pw_name : fmt::format("user {}", getuid());
}

void keep(store::Store& store, DecisionKind kind, const std::string& target, const std::string& reason,
          const std::optional<std::string>& until = {}) {
  // Decisions of one second stay in their order.
  const std::string name = fmt::format("{:016x}-{}", wall_clock_ns(), random_token());
  store.decide({name, kind, target, reason, user_name(), utc_text(std::time(nullptr)), until});
}

void need_reason(const char* verb, const std::string& reason) {
  if (reason.find_first_not_of(" \t\r\n") == reason.npos)
    throw UsageError(fmt::format("history {}: --reason: is empty", verb));
}

// How many series the pattern matches. Throws UsageError if there is none.
std::size_t matched(const char* verb, const std::string& pattern, const std::vector<TrackedSeries>& series) {
  std::size_t count = 0;
  std::vector<std::string> names;
  for (const auto& one : series) {
    count += matches(pattern, one.name) ? 1 : 0;
    names.push_back(one.name);
  }
  if (count == 0)
    throw UsageError(
        fmt::format("history {}: no series matches {}{}", verb, in_quotes(pattern), suggestion(pattern, names)));
  return count;
}

}  // namespace

std::string acknowledge(const std::filesystem::path& file, const DecisionRequest& given) {
  need_reason("ack", given.reason);
  store::Store store = store::Store::open_existing(file);
  const auto reported = reported_events(store.read());
  const std::string& id = reported_named(reported, given.target, "history ack").id;
  keep(store, DecisionKind::acknowledge, id, given.reason);
  return fmt::format("{} is acknowledged", id);
}

std::string mute(const std::filesystem::path& file, const DecisionRequest& given) {
  need_reason("mute", given.reason);
  const Night until = parse_date(given.until, "history mute: --until");
  store::Store store = store::Store::open_existing(file);
  const store::Contents contents = store.read();
  const auto series = tracked_series(contents);
  const Night last = last_night(series).value_or(until);
  if (until < last)
    throw UsageError(
        fmt::format("history mute: --until: {} is over: the newest night is {}", given.until, date_text(last)));
  const auto reported = reported_events(contents);
  std::string what = "event " + given.target;
  if (std::ranges::none_of(reported, [&](const auto& one) { return one.id == given.target; }))
    what = fmt::format("{} series", matched("mute", given.target, series));
  keep(store, DecisionKind::mute, given.target, given.reason, given.until);
  return fmt::format("{}: muted until {}", what, given.until);
}

std::string unmute(const std::filesystem::path& file, const DecisionRequest& given) {
  store::Store store = store::Store::open_existing(file);
  std::set<std::string> muted;
  for (const store::Decision& one : store.read().decisions) {
    if (one.kind == DecisionKind::mute) muted.insert(one.target);
    if (one.kind == DecisionKind::unmute) muted.erase(one.target);
  }
  if (!muted.contains(given.target))
    throw UsageError(fmt::format("history unmute: {} is not muted{}", in_quotes(given.target),
                                 suggestion(given.target, std::vector<std::string>(muted.begin(), muted.end()))));
  keep(store, DecisionKind::unmute, given.target, given.reason);
  return fmt::format("{} is no longer muted", given.target);
}

std::string expect(const std::filesystem::path& file, const DecisionRequest& given) {
  constexpr Night usual = 14;
  need_reason("expect", given.reason);
  store::Store store = store::Store::open_existing(file);
  const auto series = tracked_series(store.read());
  const std::size_t count = matched("expect", given.target, series);
  const Night until =
      given.until.empty() ? last_night(series).value_or(0) + usual : parse_date(given.until, "history expect: --until");
  keep(store, DecisionKind::expect, given.target, given.reason, date_text(until));
  return fmt::format("{} series: changes up to {} are expected", count, date_text(until));
}

}  // namespace assay::history
