// Numbers and units as programs print them.
#include "harness/figures/quantity.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace assay {
namespace {

TEST(Quantity, IsANumberInBaseUnits) {
  const std::vector<std::tuple<std::string, double, std::string>> all = {
      {"5", 5, "-"},
      {"5.", 5, "-"},
      {"-1.5e-3", -1.5e-3, "-"},
      {"+.5", 0.5, "-"},
      {"1,234,567.5", 1234567.5, "-"},
      {"1_000", 1000, "-"},
      {"1'000'000", 1e6, "-"},
      {"2E3 ms", 2, "s"},
      {"5ms", 5e-3, "s"},
      {"7 \xc2\xb5s", 7e-6, "s"},
      {"7 \xce\xbcs, so", 7e-6, "s"},
      {"3 seconds", 3, "s"},
      {"3 sec.", 3, "s"},
      {"2 min", 120, "s"},
      {"2 min 21 s", 141, "s"},
      {"3 h 5 min", 11100, "s"},
      {"0m1.25s", 1.25, "s"},
      {"1h5min", 3900, "s"},
      {"12 %", 0.12, "1"},
      {"12%", 0.12, "1"},
      {"2.5x", 2.5, "1"},
      {"1.2M", 1.2e6, "-"},
      {"10k", 1e4, "-"},
      {"1.24 M tokens/s", 1.24e6, "tokens/s"},
      {"412 GFLOP/s", 412e9, "FLOP/s"},
      {"4 TFLOPS", 4e12, "FLOP/s"},
      {"4 GFLOPs", 4e9, "FLOP"},
      {"41.9 GB/s", 41.9e9, "B/s"},
      {"2 GiB", 2147483648.0, "B"},
      {"8 Gbit/s", 8e9, "bit/s"},
      {"8 Gbps", 8e9, "bit/s"},
      {"1,024 img/s", 1024, "img/s"},
      {"60 tokens/min", 1, "tokens/s"},
      {"20 ms/step", 0.02, "s/step"},
      {"3.1 mW", 3.1e-3, "W"},
      {"5 (GB/s)", 5e9, "B/s"},
      {"5.1 \xc2\xb1 0.2 ms", 5.1e-3, "s"},
      {"5.1 ms \xc2\xb1 0.2 ms", 5.1e-3, "s"},
      {"5 widgets", 5, "-"},
      {"5; more", 5, "-"},
      {"5, 6", 5, "-"},
      {"5 min 3 max 9", 5, "-"},
      {"5 s=3", 5, "-"},
      {"5 b: 3", 5, "-"},
      {"5 GB/s: good", 5e9, "B/s"},
  };
  for (const auto& [text, value, unit] : all) {
    const auto found = quantity_at(text);
    ASSERT_TRUE(found) << text;
    EXPECT_DOUBLE_EQ(found->value, value) << text;
    EXPECT_EQ(found->unit.value_or("-"), unit) << text;
    EXPECT_LE(found->bytes, text.size()) << text;
  }
}

TEST(Quantity, IsNothingWhereTheNumberIsPartOfSomethingElse) {
  for (const char* text :
       {"",        "x",     "nan",     "inf",      "-",          ".",         "e5",   "1,5",  "1,2345",
        "1,234,5", "1.2.3", "1.234,5", "12:30:00", "2026-01-31", "3/8",       "5abc", "0x1f", "5m",
        "5 M",     "1e999", "<5",      "~5",       "$5",         "5\xc2\xb0", "1h30q"})
    EXPECT_FALSE(quantity_at(text)) << text << " is " << quantity_at(text)->value;
}

TEST(Quantity, EndsBehindItsUnit) {
  EXPECT_EQ(quantity_at("5 GB/s higher")->bytes, 6u);
  EXPECT_EQ(quantity_at("5 of 8")->bytes, 1u);
  EXPECT_EQ(quantity_at("2 min 21 s, then")->bytes, 10u);
  EXPECT_EQ(quantity_at("2 min 21 apples")->bytes, 1u);
  EXPECT_DOUBLE_EQ(quantity_at("2 min 21 apples")->value, 2);
}

TEST(Quantity, OfOneKindIsConverted) {
  EXPECT_EQ(in_unit(2, "s", "s"), 2);
  EXPECT_EQ(in_unit(2, "s", "ms"), 2000);
  EXPECT_EQ(in_unit(2, "GB/s", "B/s"), 2e9);
  EXPECT_EQ(in_unit(2, "widgets", "widgets"), 2);
  EXPECT_FALSE(in_unit(2, "s", "B"));
  EXPECT_FALSE(in_unit(2, "widgets", "s"));
}

TEST(Quantity, ANumberAloneIsTheWholeWord) {
  EXPECT_EQ(number_from("1,000"), 1000);
  EXPECT_EQ(number_from("5."), 5);
  for (const char* word : {"", "5s", "5,", "nan", "5 ", "1e999"}) EXPECT_FALSE(number_from(word)) << word;
}

}  // namespace
}  // namespace assay
