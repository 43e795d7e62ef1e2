// Decisions of people: what they may name, and what the store then has.
#include "harness/history/decide.h"

#include "harness/history/series/tracked.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/store/history_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::history {
namespace {

using store::DecisionKind;
using testing::HasSubstr;

class Decide : public testing::Test {
 protected:
  Decide() {
    store::Store store = store::Store::open(file_);
    for (int night = 0; night < 3; ++night) store.add(assay::test::night_run(night, 0.5), {});
    store.save_events(std::vector<store::StoredEvent>{
        {"abcd1234", "open",
         R"({"kind": "slower", "from": {"night": "2026-01-01"}, "to": {"night": "2026-01-02"}, "opened": "2026-01-02"})"}});
  }
  std::vector<store::Decision> kept() { return store::Store::open(file_).read().decisions; }
  template <typename Function>
  std::string refusal(Function decide, const DecisionRequest& given) {
    const std::size_t before = kept().size();
    const std::string text = assay::test::refusal([&] { decide(file_, given); });
    EXPECT_EQ(kept().size(), before);
    return text;
  }

  assay::test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "h.db";
};

TEST_F(Decide, AnEventIsAcknowledgedByTheBeginningOfItsId) {
  EXPECT_EQ(acknowledge(file_, {"abcd", "rolled back"}), "abcd1234 is acknowledged");
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_EQ(kept()[0].kind, DecisionKind::acknowledge);
  EXPECT_EQ(kept()[0].target, "abcd1234");
  EXPECT_EQ(kept()[0].reason, "rolled back");
  EXPECT_FALSE(kept()[0].by.empty());
  EXPECT_THAT(refusal(acknowledge, {"ffff", "why"}), HasSubstr("history ack"));
  EXPECT_THAT(refusal(acknowledge, {"abcd", " \t"}), HasSubstr("--reason"));
}

TEST_F(Decide, AMuteNamesSeriesOrAnEventAndEnds) {
  EXPECT_EQ(mute(file_, {"*m=2 time", "repair", "2026-02-01"}), "1 series: muted until 2026-02-01");
  EXPECT_EQ(mute(file_, {"abcd1234", "repair", "2026-02-01"}), "event abcd1234: muted until 2026-02-01");
  EXPECT_EQ(kept().back().until, "2026-02-01");
  EXPECT_THAT(refusal(mute, {"m=9", "repair", "2026-02-01"}), HasSubstr("no series matches \"m=9\""));
  EXPECT_THAT(refusal(mute, {"m=2", "repair", "2026-01-02"}), HasSubstr("is over"));
  EXPECT_THAT(refusal(mute, {"m=2", "repair", "soon"}), HasSubstr("--until"));
  EXPECT_EQ(unmute(file_, {"abcd1234", ""}), "abcd1234 is no longer muted");
  EXPECT_THAT(refusal(unmute, {"abcd1234", ""}), HasSubstr("is not muted"));
}

TEST_F(Decide, ChangesAreExpectedForTwoWeeksUnlessADayIsGiven) {
  EXPECT_EQ(expect(file_, {"gemm", "tiles"}), "2 series: changes up to 2026-01-17 are expected");
  EXPECT_EQ(expect(file_, {"gemm", "tiles", "2026-01-05"}), "2 series: changes up to 2026-01-05 are expected");
  EXPECT_EQ(kept().back().kind, DecisionKind::expect);
  EXPECT_THAT(refusal(expect, {"gemm", ""}), HasSubstr("--reason"));
}

}  // namespace
}  // namespace assay::history
