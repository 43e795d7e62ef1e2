// How changes become events: by common gaps, with one id that stays, and what people decide about them.
#include "harness/history/blame/bisect.h"
#include "harness/history/confirm.h"
#include "harness/history/event_json.h"
#include "harness/history/sight.h"
#include "reports/history/document.h"
#include "tests/unit/history/made.h"

#include <gtest/gtest.h>

namespace assay::history {
namespace {

using test::first_night;
using test::history_of;
using test::Made;

Change changed(int last_before, double shift, std::vector<Change::Gap> gaps = {}) {
  Change change;
  change.stage = Stage::open;
  change.last_before = first_night + last_before;
  change.first_after = change.last_before + 1;
  change.suspected = change.first_after + 3;
  change.opened = change.first_after + 4;
  change.shift = shift;
  change.interval = {shift - 0.01, shift + 0.01};
  change.p = 1e-6;
  change.gaps = std::move(gaps);
  return change;
}

Change::Gap gap(int last_before, double weight) {
  return {first_night + last_before, first_night + last_before + 1, weight};
}

// Four series of a machine with 30 nights each, and what the detector would say of them.
struct Case {
  Made made;
  History history;

  Case() {
    for (int night = 0; night < 30; ++night) {
      made.run("a", night, {}, "c" + std::to_string(night));
      for (int one = 0; one < 4; ++one) made.point(made.series("a", "gemm/n=" + std::to_string(one)), 10);
    }
    history.contents = made.contents;
    history.series = tracked_series(history.contents);
    history.analysis.series.resize(4);
  }
  void add(std::size_t series, Change change) { history.analysis.series[series].changes.push_back(std::move(change)); }
  const std::vector<Event>& events() {
    history = judged(std::move(history));
    return history.found.events;
  }
  // Stores what is there now, as a check does.
  void report() {
    std::vector<store::StoredEvent> stored;
    for (const Event& event : events())
      stored.push_back({event.id, std::string(name_of(event.state)), event_json(event, history).dump()});
    history.contents.events = std::move(stored);
  }
  void decide(store::DecisionKind kind, const std::string& target, std::optional<std::string> until = {}) {
    history.contents.decisions.push_back({"", kind, target, "why", "ann", "2026-01-31T09:00:00Z", until});
  }
};

TEST(Events, AreWhatChangedInOneDirectionInACommonGap) {
  Case one;
  one.add(0, changed(19, -0.2, {gap(19, 0.98), gap(20, 0.02)}));  // hardly on the night after: below 5 % of its best
  one.add(1, changed(19, -0.3, {gap(19, 0.6), gap(20, 0.4)}));
  one.add(2, changed(20, -0.1, {gap(20, 1)}));
  one.add(3, changed(20, 0.3, {gap(20, 1)}));
  const auto& events = one.events();
  ASSERT_EQ(events.size(), 3u);
  // The larger of the sums of weights, 1.58 and 1.42, is taken first, with all that may lie there.
  EXPECT_EQ(events[0].kind, EventKind::slower);
  EXPECT_EQ(events[0].first_after, first_night + 21);
  EXPECT_EQ(events[0].series.size(), 1u);
  EXPECT_EQ(events[1].first_after, first_night + 20);
  ASSERT_EQ(events[1].series.size(), 2u);
  EXPECT_EQ(events[1].series[0].series, 1u) << "the largest first";
  EXPECT_DOUBLE_EQ(*events[1].shift, -0.25);
  EXPECT_EQ(events[2].kind, EventKind::faster);
}

TEST(Events, OfDistantGapsAreSeveral) {
  Case one;
  one.add(0, changed(10, -0.2, {gap(10, 1)}));
  one.add(1, changed(20, -0.2, {gap(20, 1)}));
  EXPECT_EQ(one.events().size(), 2u);
}

TEST(Events, TakeInSuspectsOfTheirGap) {
  Case one;
  one.add(0, changed(19, -0.2, {gap(19, 1)}));
  Change suspect = changed(19, -0.1, {gap(19, 1)});
  suspect.stage = Stage::suspect;
  suspect.opened.reset();
  one.add(1, suspect);
  suspect.shift = 0.1;
  one.add(2, suspect);
  ASSERT_EQ(one.events().size(), 1u);
  EXPECT_EQ(one.history.found.events[0].series.size(), 2u);
  ASSERT_EQ(one.history.found.suspects.size(), 1u) << "in the other direction";
  EXPECT_EQ(one.history.found.suspects[0].series, 2u);
}

TEST(Events, AreOverWhenALaterChangeTookThemBack) {
  Case one;
  one.add(0, changed(9, -0.2));
  one.add(0, changed(19, 0.19));
  const auto& events = one.events();
  ASSERT_EQ(events.size(), 2u);
  for (const Event& event : events)
    EXPECT_EQ(event.state, event.kind == EventKind::slower ? EventState::recovered : EventState::open);
  EXPECT_EQ(outcome_of(one.history).code, ExitCode::ok);
}

TEST(Events, KeepTheirIdWhenAnAnalysisPlacesThemElsewhere) {
  Case one;
  one.add(0, changed(19, -0.2));
  one.report();
  const std::string id = one.history.found.events[0].id;
  EXPECT_TRUE(one.history.found.events[0].fresh);
  one.decide(store::DecisionKind::acknowledge, id);
  Change& change = one.history.analysis.series[0].changes[0];
  change = changed(20, -0.2);
  const auto& events = one.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].id, id);
  EXPECT_FALSE(events[0].fresh);
  EXPECT_EQ(events[0].state, EventState::acknowledged);
}

TEST(Events, ThatAreNoneAnyMoreStayWithdrawn) {
  Case one;
  one.add(0, changed(19, -0.2));
  one.report();
  one.history.analysis.series[0].changes.clear();
  const auto& events = one.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].state, EventState::withdrawn);
  EXPECT_EQ(outcome_of(one.history).code, ExitCode::ok);
}

TEST(Events, AlarmUnlessSomebodyDecided) {
  using Kind = store::DecisionKind;
  const std::string soon = date_text(first_night + 29), past = date_text(first_night + 28);
  const auto state = [](auto decide) {
    Case one;
    one.add(0, changed(19, -0.2));
    one.report();
    decide(one, one.history.found.events[0].id);
    return one.events()[0].state;
  };
  EXPECT_EQ(state([](Case&, const auto&) {}), EventState::open);
  EXPECT_EQ(state([](Case& one, const auto& id) { one.decide(Kind::acknowledge, id); }), EventState::acknowledged);
  EXPECT_EQ(state([](Case& one, const auto&) { one.decide(Kind::acknowledge, "gemm"); }), EventState::open);
  EXPECT_EQ(state([&](Case& one, const auto&) { one.decide(Kind::mute, "gemm", soon); }), EventState::muted);
  EXPECT_EQ(state([&](Case& one, const auto&) { one.decide(Kind::mute, "gemm", past); }), EventState::open);
  EXPECT_EQ(state([&](Case& one, const auto&) { one.decide(Kind::mute, "gemm"); }), EventState::open) << "must expire";
  EXPECT_EQ(state([&](Case& one, const auto&) {
              one.decide(Kind::mute, "gemm", soon);
              one.decide(Kind::unmute, "gemm");
            }),
            EventState::open);
  EXPECT_EQ(state([&](Case& one, const auto&) { one.decide(Kind::expect, "n=0", soon); }), EventState::expected);
  EXPECT_EQ(state([&](Case& one, const auto&) { one.decide(Kind::expect, "n=0", date_text(first_night + 19)); }),
            EventState::open)
      << "the change came later";
}

TEST(Events, OfCasesThatBrokeLastUntilTheyHold) {
  Case one;
  const auto broke = [&](std::size_t run) { one.history.contents.runs[run].broken = {{"gemm/n=0", "failed: wrong"}}; };
  const auto held = [&](std::size_t run) { one.history.contents.runs[run].held = {"gemm/n=0"}; };
  broke(0);
  EXPECT_TRUE(one.events().empty()) << "it never held";
  for (std::size_t run = 1; run < 28; ++run) held(run);
  broke(28), broke(29);
  ASSERT_EQ(one.events().size(), 1u);
  const Event event = one.history.found.events[0];
  EXPECT_EQ(event.kind, EventKind::broke);
  EXPECT_EQ(event.subject, "a: gemm/n=0");
  EXPECT_EQ(event.detail, "failed: wrong");
  EXPECT_EQ(event.first_after, first_night + 28);
  EXPECT_EQ(outcome_of(one.history).code, ExitCode::failed);
  one.history.contents.runs[29].broken.clear();
  held(29);
  EXPECT_EQ(one.events()[0].state, EventState::recovered);
  EXPECT_EQ(one.history.found.events[0].id, event.id);
}

TEST(Events, OfAProtocolWithoutACommonNightAlarmIfSlower) {
  for (const double later : {10.0, 8.0}) {
    Made made;
    for (int night = 0; night < 30; ++night) {
      made.run("a", night);
      made.point(made.series("a", "f", Better::higher, night < 20 ? "p" : "q"),
                 (night < 20 ? 10 : later) * std::exp(test::noise(1, night)));
    }
    made.contents.series[1].successor_of = 1;
    const History history = history_of(made.contents);
    ASSERT_EQ(history.found.events.size(), 1u);
    const Event& event = history.found.events[0];
    EXPECT_EQ(event.kind, EventKind::changed_protocol);
    EXPECT_EQ(event.alarms(), later < 10);
    EXPECT_NEAR(*event.shift, std::log(later / 10), 0.02);
    EXPECT_EQ(history.arrival.silent.size(), 0u) << "the older one is not missing";
  }
}

TEST(Events, OfReplacedHardwareAreNoted) {
  Made made;
  for (int night = 0; night < 40; ++night) {
    made.run("a", night).hardware = night < 30 ? "x" : "y";
    made.point(made.series("a", "f"), (night < 30 ? 10 : 9) * std::exp(test::noise(1, night)));
  }
  const History history = history_of(made.contents);
  ASSERT_EQ(history.found.events.size(), 1u);
  EXPECT_EQ(history.found.events[0].kind, EventKind::hardware_replaced);
  EXPECT_EQ(history.found.events[0].state, EventState::noted);
  EXPECT_NEAR(*history.found.events[0].shift, std::log(0.9), 0.02);
  EXPECT_EQ(outcome_of(history).code, ExitCode::ok);
}

TEST(Events, AreNotOverBecauseHardwareWasReplaced) {
  for (const double after : {0.8, 1.0}) {
    Made made;
    for (int night = 0; night < 70; ++night) {
      made.run("a", night).hardware = night < 50 ? "x" : "y";
      made.point(made.series("a", "f"), 10 * std::exp(test::noise(1, night)) *
                                            (night < 40   ? 1
                                             : night < 50 ? 0.8
                                                          : after));
    }
    const History history = history_of(made.contents);
    const auto slower = std::find_if(history.found.events.begin(), history.found.events.end(),
                                     [](const Event& one) { return one.kind == EventKind::slower; });
    ASSERT_NE(slower, history.found.events.end());
    EXPECT_EQ(slower->state, after < 1 ? EventState::open : EventState::recovered);
    EXPECT_EQ(outcome_of(history).code, after < 1 ? ExitCode::failed : ExitCode::ok);
  }
}

TEST(Outcome, NeedsFourFifthsOfLastWeeksSeriesAndFifteenNights) {
  const auto code = [](int nights, int on_the_last) {
    Made made;
    for (int night = 0; night < nights; ++night) {
      made.run("a", night);
      for (int one = 0; one < (night == nights - 1 ? on_the_last : 10); ++one)
        made.point(made.series("a", "gemm/n=" + std::to_string(one)), 10);
    }
    return outcome_of(history_of(made.contents)).code;
  };
  EXPECT_EQ(code(15, 8), ExitCode::ok);
  EXPECT_EQ(code(15, 7), ExitCode::no_data);
  EXPECT_EQ(code(14, 10), ExitCode::no_data);
  EXPECT_EQ(code(0, 0), ExitCode::no_data);
}

TEST(Outcome, IsNotEnoughIfTheLastNightIsTooLongAgo) {
  Made made;
  for (int night = 0; night < 15; ++night) {
    made.run("a", night);
    made.point(made.series("a", "gemm/n=1"), 10);
  }
  const History history = history_of(made.contents);
  EXPECT_EQ(outcome_of(history, {.max_age = 3, .today = first_night + 17}).code, ExitCode::ok);
  EXPECT_EQ(outcome_of(history, {.max_age = 3, .today = first_night + 18}).code, ExitCode::no_data);
  EXPECT_EQ(outcome_of(history, {.today = first_night + 100}).code, ExitCode::ok);
}

TEST(Confirm, TakesTheLargestStepBeyondAnyExcursion) {
  EXPECT_EQ(to_confirm({}), nullptr);
  std::vector<Suspect> suspects(4);
  for (std::size_t i = 0; i < suspects.size(); ++i) suspects[i].series = i;
  EXPECT_EQ(to_confirm(suspects)->series, 0u);
  suspects[1].change.same_night = suspects[2].change.same_night = true;
  suspects[0].change.shift = -0.5;
  suspects[1].change.shift = suspects[2].change.shift = -0.1;
  suspects[3].change.same_night = true;
  suspects[3].change.shift = 0.2;
  EXPECT_EQ(to_confirm(suspects)->series, 3u);
  suspects[1].dismissed = suspects[3].dismissed = true;
  EXPECT_EQ(to_confirm(suspects)->series, 2u);
  suspects[0].dismissed = suspects[2].dismissed = true;
  EXPECT_EQ(to_confirm(suspects), nullptr);
}

TEST(Confirm, AllOfANightStayWithinTheirShare) {
  double sum = 0;
  for (std::size_t earlier = 0; earlier < 40; ++earlier) sum += confirm_error({}, earlier);
  EXPECT_LE(sum, Options().false_alarms * confirm_share);
  EXPECT_GT(confirm_error({}, 0), 0.4 * Options().false_alarms * confirm_share);
  EXPECT_TRUE(is_confirmed(Direction::slower, true) && is_confirmed(Direction::faster, false));
  EXPECT_FALSE(is_confirmed(Direction::faster, true) || is_confirmed(Direction::same, true));
}

TEST(Bisect, NamesBothCommitsOnlyIfTheyAreCommits) {
  Case one;
  one.add(0, changed(19, -0.2));
  const auto commands = [&] { return bisect_commands(event_json(one.events()[0], one.history)); };
  ASSERT_EQ(commands().size(), 4u);
  EXPECT_EQ(commands()[2], "git bisect start c20 c19");
  one.history.contents.runs[20].commit = "; rm -rf /";
  EXPECT_TRUE(commands().empty());
  one.history.contents.runs[20].commit = "--upload-pack=x";
  EXPECT_TRUE(commands().empty());
}

TEST(Bisect, LooksForTheCommitWithTheChangeInEitherDirection) {
  const auto judge = [](const char* kind, const char* direction) {
    const Json change{
        {"kind", kind}, {"direction", direction}, {"from", {{"commit", "c1"}}}, {"to", {{"commit", "c2"}}}};
    return bisect_commands(change, {.build = "make", .run = "./bench", .metric = "rate"}).back();
  };
  // A is faster than B, exit code 1, on commits with the change.
  const std::string slower = judge("slower", "slower"), faster = judge("faster", "faster");
  EXPECT_LT(slower.find("assay-good"), slower.find("--b"));
  EXPECT_GT(faster.find("assay-good"), faster.find("--b"));
  EXPECT_NE(slower.find("--metric"), std::string::npos);
  EXPECT_EQ(judge("broke", "").find("assay ab"), std::string::npos) << "the command fails or does not";
}

// Four series with 40 nights; a fifth slower from night 20 on in the first, as `history confirm` has measured on that
// night, until before `back`. The detector knows nothing of it.
struct Confirmed : Case {
  explicit Confirmed(int back) {
    made = {};
    for (int night = 0; night < 40; ++night) {
      made.run("a", night);
      for (int one = 0; one < 4; ++one)
        made.point(made.series("a", "gemm/n=" + std::to_string(one)),
                   10 * std::exp(test::noise(one, night)) * (one == 0 && night >= 20 && night < back ? 0.8 : 1));
    }
    history.contents = made.contents;
    history.series = tracked_series(history.contents);
    Event event;
    event.id = "abc";
    event.last_before = first_night + 19;
    event.first_after = event.opened = first_night + 20;
    event.series.push_back({0, std::log(0.8), {-0.23, -0.22}, 1, true, Measured{std::log(0.8), first_night + 20}});
    event.series.push_back({1, std::log(0.8), {-0.23, -0.22}, 1, true});
    event.confirmed = true;
    finish_series(event, history.series);
    history.contents.events.push_back({event.id, "open", event_json(event, history).dump()});
  }
  const Event& event() {
    EXPECT_EQ(events().size(), 1u);
    EXPECT_EQ(history.found.events[0].id, "abc");
    EXPECT_TRUE(history.found.events[0].confirmed);
    return history.found.events[0];
  }
};

TEST(Confirm, HoldsTheMeasuredSeriesUntilItsFiguresAreBack) {
  Confirmed one(40);
  EXPECT_EQ(one.event().state, EventState::open);
  ASSERT_EQ(one.event().series.size(), 1u) << "the other was not measured";
  EXPECT_EQ(one.event().series[0].series, 0u);
  EXPECT_EQ(outcome_of(one.history).code, ExitCode::failed);
  one.report();
  EXPECT_EQ(one.event().state, EventState::open) << "as the check has stored it";
  Confirmed over(30);
  EXPECT_EQ(over.event().state, EventState::recovered);
  EXPECT_EQ(*over.event().closed, first_night + 31) << "the second night of three";
  over.report();
  EXPECT_EQ(over.event().state, EventState::recovered);
}

TEST(Confirm, OfAnOlderVersionHoldsAllOfItsSeries) {
  Confirmed one(40);
  Json document = Json::parse(one.history.contents.events[0].document);
  for (Json& change : document["changes"]) change.erase("measured");
  one.history.contents.events[0].document = document.dump();
  EXPECT_EQ(one.event().series.size() + one.event().back, 2u) << "it shows those that are still slower";
  EXPECT_EQ(one.event().state, EventState::open);
}

TEST(Events, AreNotWithdrawnWhereNothingShowsTheNightsBeforeThem) {
  Case one;
  one.add(0, changed(19, -0.2));
  one.report();
  one.history.analysis.series[0].changes.clear();
  for (store::Series& series : one.history.contents.series)
    std::erase_if(series.points, [](const store::Point& point) { return point.night < first_night + 25; });
  one.history.series = tracked_series(one.history.contents);
  ASSERT_EQ(one.events().size(), 1u);
  EXPECT_EQ(one.history.found.events[0].state, EventState::open);
  EXPECT_TRUE(one.history.found.events[0].alarms());
  one.decide(store::DecisionKind::acknowledge, one.history.found.events[0].id);
  EXPECT_EQ(one.events()[0].state, EventState::acknowledged);
}

TEST(Sight, IsLostIfMostSeriesAreTooNoisyOrTooShort) {
  for (const auto& [noisy, young, blind] : {std::tuple(4, 0, false), std::tuple(6, 0, true), std::tuple(3, 3, true)}) {
    Made made;
    for (int night = 0; night < 40; ++night) {
      made.run("a", night);
      for (int one = 0; one < 10; ++one)
        if (one < 10 - young || night >= 30)
          made.point(made.series("a", "f/n=" + std::to_string(one)),
                     10 * std::exp(test::noise(one, night) * (one < noisy ? 100 : 1)));
    }
    const History history = history_of(made.contents);
    const Sight sight = sight_of(history);
    EXPECT_EQ(sight.series, 10u);
    EXPECT_EQ(sight.blind, static_cast<std::size_t>(noisy + young));
    EXPECT_EQ(sight.young, static_cast<std::size_t>(young));
    EXPECT_EQ(sight.is_blind(), blind);
    EXPECT_EQ(history_document(history).tone, blind ? report::Tone::warn : report::Tone::good);
    EXPECT_EQ(outcome_of(history, {.strict = true}).code, blind ? ExitCode::no_data : ExitCode::ok);
    EXPECT_EQ(outcome_of(history).code, ExitCode::ok);
  }
}

}  // namespace
}  // namespace assay::history
