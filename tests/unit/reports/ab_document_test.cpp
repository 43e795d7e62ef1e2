// What `assay ab` prints and writes of a result.
#include "reports/ab/document.h"

#include "harness/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::report {
namespace {

using testing::HasSubstr;

ab::Result slower_result() {
  ab::Result result;
  ab::Case one{"copy", "B/s", 200, 100, {}};
  one.outcome.verdict = Direction::slower;
  one.outcome.ratio = 0.5;
  one.outcome.pairs = 7;
  result.cases = {one, {"sort", "s", 1, 1, {}}};
  result.all = one.outcome;
  result.one_sided = {"new"};
  return result;
}

TEST(AbDocument, NamesTheVerdictAndWhatWasNotJudged) {
  const Document document = ab_document(slower_result(), {});
  EXPECT_EQ(document.tone, Tone::bad);
  EXPECT_THAT(document.verdict, HasSubstr("B is slower"));
  EXPECT_THAT(document.verdict, HasSubstr("7 pairs"));
  ASSERT_EQ(document.sections.size(), 1u);
  const auto& table = std::get<Table>(document.sections[0].blocks.at(0));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][3].text, "-50.0 %");
  EXPECT_THAT(std::get<Text>(document.sections[0].blocks.at(1)).text, HasSubstr("new"));
}

TEST(AbDocument, WritesWhatIsUnknownAsNull) {
  const Json json = ab_json(slower_result(), {"./a", "./b", "", {}});
  EXPECT_EQ(json["verdict"], "slower");
  EXPECT_EQ(json["ratio"], 0.5);
  EXPECT_TRUE(json["low"].is_null() && json["high"].is_null() && json["metric"].is_null());
  EXPECT_EQ(json["commands"], (Json{{"a", "./a"}, {"b", "./b"}}));
  EXPECT_TRUE(json["cases"][1]["ratio"].is_null()) << "no pair measured it";
}

TEST(AbDocument, SaysWhyNothingWasDecided) {
  ab::Result result = slower_result();
  EXPECT_EQ(why_undecided(result, {}), "");
  result.ended = ab::Ended::budget;
  EXPECT_THAT(why_undecided(result, {}), HasSubstr("enough for 7 pairs"));
  result.all.pairs = 0;
  EXPECT_THAT(why_undecided(result, {}), HasSubstr("one pair takes longer"));
  result.ended = ab::Ended::interrupted;
  EXPECT_THAT(why_undecided(result, {}), HasSubstr("interrupted"));
}

}  // namespace
}  // namespace assay::report
