// What keeps two records' figures from being compared, between sides and within a series.
#include "harness/record/comparable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

Record record_of(int schema = 2) {
  Record record;
  record.schema = schema;
  record.protocol = {{"cache", "cold"}, {"global_batch", "8"}, {"hash", "a"}};
  record.conditions = {{"types", "f32"}};
  record.choices = {{"implementation", "brgemm"}, {"isa", "avx512"}};
  record.labels = {{"rack", "7"}};
  return record;
}

std::string text_of(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& one : differences)
    text += fmt::format("{}{}{} {}/{}", text.empty() ? "" : "; ", one.protocol ? "protocol " : "", one.name,
                        one.own.value_or("-"), one.other.value_or("-"));
  return text;
}

constexpr std::string_view batch[] = {"global_batch"}, implementation[] = {"implementation"};
const std::set<std::string> rack{"rack"};
const Scope sides{.sides = true};
const Scope series{.free_protocol = batch, .free_choices = implementation, .bound_labels = &rack};

struct Case {
  const char* name;
  void (*change)(Record&);  // of the second record
  const char* between_sides;
  const char* in_series;
};

class Comparable : public testing::TestWithParam<Case> {};

TEST_P(Comparable, NamesWhatDiffers) {
  const Record own = record_of();
  Record other = own;
  GetParam().change(other);
  EXPECT_EQ(text_of(differences(own, other, sides)), GetParam().between_sides);
  EXPECT_EQ(text_of(differences(own, other, series)), GetParam().in_series);
  for (const Scope* scope : {&sides, &series}) {
    const bool same = differences(own, other, *scope).empty();
    EXPECT_EQ(differences(other, own, *scope).empty(), same);
    EXPECT_EQ(protocol_signature(own, *scope) == protocol_signature(other, *scope) &&
                  bound_attributes(own, *scope) == bound_attributes(other, *scope),
              same);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Comparable,
    testing::Values(
        Case{"equal", [](Record&) {}, "", ""},
        Case{"hash_decides", [](Record& r) { r.protocol["cache"] = "hot"; }, "", "protocol cache cold/hot"},
        Case{"protocol",
             [](Record& r) {
               r.protocol = {{"cache", "hot"}, {"hash", "b"}};
             },
             "protocol cache cold/hot; protocol global_batch 8/-", "protocol cache cold/hot"},
        Case{"batch",
             [](Record& r) {
               r.protocol = {{"cache", "cold"}, {"global_batch", "16"}, {"hash", "b"}};
             },
             "protocol global_batch 8/16", ""},
        Case{"hash_alone", [](Record& r) { r.protocol["hash"] = "b"; }, "protocol hash a/b", ""},
        Case{"condition", [](Record& r) { r.conditions["types"] = "bf16"; }, "types f32/bf16", "types f32/bf16"},
        Case{"absent", [](Record& r) { r.conditions.clear(); }, "types f32/-", "types f32/-"},
        Case{"isa", [](Record& r) { r.choices["isa"] = "amx"; }, "isa avx512/amx", "isa avx512/amx"},
        Case{"implementation", [](Record& r) { r.choices["implementation"] = "jit"; }, "implementation brgemm/jit", ""},
        Case{"label", [](Record& r) { r.labels["rack"] = "8"; }, "", "rack 7/8"},
        Case{"remark", [](Record& r) { r.labels["note"] = "x"; }, "", ""}),
    [](const auto& one) { return std::string(one.param.name); });

// Schema 1 has only labels, which the reader turns into conditions: these do not count between sides.
TEST(ComparableSchema1, ConditionsDoNotCountBetweenSides) {
  const Record own = record_of(1);
  Record other = own;
  other.conditions = {{"side", "b"}};
  EXPECT_TRUE(differences(own, other, sides).empty());
  EXPECT_EQ(text_of(differences(own, other, series)), "side -/b; types f32/-");
  other.choices["isa"] = "amx";
  EXPECT_EQ(text_of(differences(own, other, sides)), "isa avx512/amx");
  other.choices.clear();
  EXPECT_EQ(text_of(differences(own, other, sides)), "implementation brgemm/-; isa avx512/-");
}

// A new run against one of an older build.
TEST(ComparableSchema1, WithSchema2OnlyWhatBothRecordedCounts) {
  const Record own = record_of(1);
  Record other = record_of();
  other.conditions["accumulation"] = "f32";
  other.choices["threads"] = "2";
  EXPECT_TRUE(differences(own, other, sides).empty());
  EXPECT_TRUE(differences(other, own, sides).empty());
  other.choices["isa"] = "amx";
  EXPECT_EQ(text_of(differences(own, other, sides)), "isa avx512/amx");
  other.protocol = {{"cache", "hot"}, {"global_batch", "8"}, {"hash", "b"}};
  EXPECT_EQ(text_of(differences(own, other, sides)), "protocol cache cold/hot; isa avx512/amx");
}

}  // namespace
}  // namespace assay
