// What `history confirm` takes, asks for and concludes, with a measurement that is made up.
#include "harness/history/confirm.h"

#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/history/made.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::history {
namespace {

using assay::test::refusal;
using test::first_night;
using test::history_of;
using test::Made;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two series of 20 nights, and a suspect in each: the first much slower since the last night, the second a little
// faster.
History with_suspects() {
  Made made;
  for (int night = 0; night < 20; ++night) {
    made.run("a", night, night == 18 ? store::Facts{{"label.command", "./good it's"}} : store::Facts{});
    for (const char* key : {"f/n=1", "f/n=2"}) made.point(made.series("a", key), 10);
  }
  History history = history_of(made.contents);
  for (std::size_t i = 0; i < 2; ++i) {
    Suspect one;
    one.id = i == 0 ? "ab12" : "ab34";
    one.series = i;
    one.change.last_before = first_night + 18;
    one.change.first_after = first_night + 19;
    one.change.shift = i == 0 ? -0.2 : 0.1;
    one.change.same_night = true;
    history.found.suspects.push_back(one);
  }
  return history;
}

ab::Result answer(Direction verdict, double ratio) {
  ab::Result result;
  result.all.verdict = verdict;
  result.all.ratio = ratio;
  result.all.pairs = 9;
  return result;
}

// As if both commands had printed a figure of the first series.
Measure measured(Direction verdict, double ratio) {
  return [=](const ab::Commands& commands, const ab::Options&) {
    for (const char side : {'A', 'B'}) commands.read({"f/n=1 5 FLOP/s higher\n"}, side);
    return answer(verdict, ratio);
  };
}

const ConfirmRequest both_builds{.good = "./good", .bad = "./bad"};

TEST(Candidate, IsNamedByTheBeginningOfAnId) {
  const History history = with_suspects();
  EXPECT_EQ(candidate_of(history, "")->event.id, "ab12") << "the largest";
  EXPECT_EQ(candidate_of(history, "ab3")->event.kind, EventKind::faster);
  EXPECT_THAT(refusal([&] { candidate_of(history, "ab"); }), AllOf(HasSubstr("ab12"), HasSubstr("ab34")));
  EXPECT_THAT(refusal([&] { candidate_of(history, "cd"); }), HasSubstr("\"cd\""));
  EXPECT_FALSE(candidate_of(history_of({}), ""));
}

TEST(Confirmation, WithoutCommandsNamesThoseThatTheRunsRecorded) {
  const History history = with_suspects();
  const Measure never = [](const auto&, const auto&) -> ab::Result { throw Error("measured"); };
  const auto text = refusal([&] { confirm(history, *candidate_of(history, ""), {.bad = "./bad"}, never); });
  EXPECT_THAT(text, AllOf(HasSubstr("recorded: --good './good it'\\''s'"), Not(HasSubstr("recorded: --bad"))));
  EXPECT_THAT(refusal([&] {
                confirm(history, *candidate_of(history, ""), {"./good", "./bad", "f/n=2"}, never);
              }),
              HasSubstr("history confirm: --metric f/n=2"));
}

TEST(Confirmation, AsksForTheShareOfErrorThatTheNightHasLeft) {
  History history = with_suspects();
  const auto error_asked = [&] {
    double error = 0;
    confirm(history, *candidate_of(history, ""), both_builds,
            [&](const ab::Commands& commands, const ab::Options& asked) {
              error = asked.error;
              commands.read({"f/n=1 5 FLOP/s higher\n"}, 'A');
              return answer(Direction::same, 1);
            });
    return error;
  };
  const double first = error_asked();
  EXPECT_EQ(first, confirm_error(history.options, 0));
  const Confirmation earlier = confirm(history, *candidate_of(history, ""), both_builds, measured(Direction::same, 1));
  assay::test::TemporaryFolder folder;
  store::Store store = store::Store::open(folder.path() / "h.db");
  save_confirmation(store, earlier, history);
  history.contents.events = store.read().events;
  EXPECT_EQ(error_asked(), first / 2);
}

TEST(Confirmation, IsKeptOnceItIsDecided) {
  const History history = with_suspects();
  struct Expected {
    Direction verdict;
    ExitCode code;
    const char* state;  // null: nothing is kept
    const char* meaning;
  };
  for (const Expected& one : {Expected{Direction::slower, ExitCode::failed, "open", ""},
                              Expected{Direction::same, ExitCode::ok, "dismissed", "dismissed"},
                              Expected{Direction::faster, ExitCode::ok, "dismissed", "dismissed"},
                              Expected{Direction::unknown, ExitCode::no_data, nullptr, "nothing is stored"}}) {
    const Confirmation found = confirm(history, *candidate_of(history, ""), both_builds, measured(one.verdict, 0.8));
    EXPECT_EQ(found.code(), one.code);
    EXPECT_EQ(found.series(), 0u);
    EXPECT_THAT(found.meaning(), HasSubstr(one.meaning));
    EXPECT_EQ(found.meaning().empty(), found.is_confirmed());
    assay::test::TemporaryFolder folder;
    store::Store store = store::Store::open(folder.path() / "h.db");
    save_confirmation(store, found, history);
    const auto events = store.read().events;
    ASSERT_EQ(events.size(), one.state ? 1u : 0u);
    if (!one.state) continue;
    EXPECT_EQ(events[0].state, one.state);
    const Json kept = Json::parse(events[0].document);
    EXPECT_EQ(kept["confirmed"], one.verdict == Direction::slower);
    EXPECT_EQ(kept["changes"][0]["measured"].is_null(), one.verdict != Direction::slower);
  }
}

TEST(Confirmation, AnEventThatTheBuildsDoNotShowStaysOpen) {
  const History history = with_suspects();
  Candidate event = *candidate_of(history, "");
  event.suspect = false;
  const Confirmation found = confirm(history, event, both_builds, measured(Direction::same, 1));
  EXPECT_EQ(found.candidate.event.state, EventState::open);
  EXPECT_FALSE(found.is_kept());
  EXPECT_THAT(found.meaning(), HasSubstr("not the build"));
}

}  // namespace
}  // namespace assay::history
