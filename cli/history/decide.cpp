// assay history ack, mute, unmute, expect: what people decide about events. Decisions are kept with who and when.
#include "cli/history/history.h"
#include "harness/core/host.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/history/events/events.h"
#include "harness/runs/filled_text.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <set>

namespace assay::cli {

namespace {

using store::DecisionKind;

struct DecisionFlags {
  std::string store, target, reason, until;
};

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
  results_are_stored();
}

void need_reason(const char* verb, const std::string& reason) {
  if (blank(reason)) throw UsageError(fmt::format("history {}: --reason: is empty", verb));
}

// How many series the pattern matches. Throws UsageError if there is none.
std::size_t matched(const char* verb, const std::string& pattern, const std::vector<history::TrackedSeries>& series) {
  std::size_t count = 0;
  std::vector<std::string> names;
  for (const auto& one : series) {
    count += history::matches(pattern, one.name) ? 1 : 0;
    names.push_back(one.name);
  }
  if (count == 0)
    throw UsageError(
        fmt::format("history {}: no series matches {}{}", verb, in_quotes(pattern), suggestion(pattern, names)));
  return count;
}

ExitCode run_ack(const DecisionFlags& flags) {
  need_reason("ack", flags.reason);
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const auto reported = history::reported_events(store.read());
  const history::Reported& event = history::reported_named(reported, flags.target, "history ack");
  keep(store, DecisionKind::acknowledge, event.id, flags.reason);
  fmt::print("{} is acknowledged\n", event.id);
  return ExitCode::ok;
}

ExitCode run_mute(const DecisionFlags& flags) {
  need_reason("mute", flags.reason);
  const history::Night until = history::parse_date(flags.until, "history mute: --until");
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const store::Contents contents = store.read();
  const auto series = history::tracked_series(contents);
  const history::Night last = history::last_night(series).value_or(until);
  if (until < last)
    throw UsageError(fmt::format("history mute: --until: {} is over: the newest night is {}", flags.until,
                                 history::date_text(last)));
  const auto reported = history::reported_events(contents);
  std::string what = "event " + flags.target;
  if (std::none_of(reported.begin(), reported.end(), [&](const auto& one) { return one.id == flags.target; }))
    what = fmt::format("{} series", matched("mute", flags.target, series));
  keep(store, DecisionKind::mute, flags.target, flags.reason, flags.until);
  fmt::print("{}: muted until {}\n", what, flags.until);
  return ExitCode::ok;
}

ExitCode run_unmute(const DecisionFlags& flags) {
  store::Store store = store::Store::open_existing(store_path(flags.store));
  std::set<std::string> muted;
  for (const store::Decision& one : store.read().decisions) {
    if (one.kind == DecisionKind::mute) muted.insert(one.target);
    if (one.kind == DecisionKind::unmute) muted.erase(one.target);
  }
  if (!muted.contains(flags.target))
    throw UsageError(fmt::format("history unmute: {} is not muted{}", in_quotes(flags.target),
                                 suggestion(flags.target, std::vector<std::string>(muted.begin(), muted.end()))));
  keep(store, DecisionKind::unmute, flags.target, flags.reason);
  fmt::print("{} is no longer muted\n", flags.target);
  return ExitCode::ok;
}

ExitCode run_expect(const DecisionFlags& flags) {
  constexpr history::Night usual = 14;
  need_reason("expect", flags.reason);
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const auto series = history::tracked_series(store.read());
  const std::size_t count = matched("expect", flags.target, series);
  const history::Night last = history::last_night(series).value_or(0);
  const history::Night until =
      flags.until.empty() ? last + usual : history::parse_date(flags.until, "history expect: --until");
  keep(store, DecisionKind::expect, flags.target, flags.reason, history::date_text(until));
  fmt::print("{} series: changes up to {} are expected\n", count, history::date_text(until));
  return ExitCode::ok;
}

std::shared_ptr<DecisionFlags> with_target(CLI::App& app, const char* target, const char* help) {
  auto flags = std::make_shared<DecisionFlags>();
  add_store_option(app, flags->store);
  app.add_option(target, flags->target, help)->required();
  return flags;
}

}  // namespace

Command history_ack_command(CLI::App& history) {
  CLI::App* app = history.add_subcommand("ack", "Says that somebody knows of an event: it no longer fails checks");
  auto flags = with_target(*app, "event", "An event's id, or how it begins");
  app->add_option("--reason", flags->reason, "Why")->required();
  return {app, [flags] { return run_ack(*flags); }};
}

Command history_mute_command(CLI::App& history) {
  CLI::App* app = history.add_subcommand("mute", "Lets series, or an event, fail no check until a day");
  auto flags = with_target(*app, "pattern", "Part of series' names, a pattern (* and ?), or an event's id");
  app->add_option("--until", flags->until, "The last night of it: 2026-01-31")->required();
  app->add_option("--reason", flags->reason, "Why")->required();
  return {app, [flags] { return run_mute(*flags); }};
}

Command history_unmute_command(CLI::App& history) {
  CLI::App* app = history.add_subcommand("unmute", "Ends a mute");
  auto flags = with_target(*app, "pattern", "As it was muted");
  app->add_option("--reason", flags->reason, "Why");
  return {app, [flags] { return run_unmute(*flags); }};
}

Command history_expect_command(CLI::App& history) {
  CLI::App* app = history.add_subcommand("expect", "Says that series will change: such events fail no check");
  auto flags = with_target(*app, "pattern", "Part of series' names, or a pattern (* and ?)");
  app->add_option("--until", flags->until, "The last night of changes that are meant (two weeks from the newest)");
  app->add_option("--reason", flags->reason, "Why")->required();
  return {app, [flags] { return run_expect(*flags); }};
}

}  // namespace assay::cli
