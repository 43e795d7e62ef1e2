#include "harness/core/units.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ParseBytes, IsExact) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("8B"), 8);
  EXPECT_EQ(parse_bytes("1kB"), 1000);
  EXPECT_EQ(parse_bytes("1KiB"), 1024);
  EXPECT_EQ(parse_bytes("64MiB"), 64ll << 20);
  EXPECT_EQ(parse_bytes(" 1.5 GiB "), 3ll << 29);
  EXPECT_EQ(parse_bytes("1GB"), 1000000000);
  EXPECT_EQ(parse_bytes("0.1GB"), 100000000);
  EXPECT_EQ(parse_bytes("1gib"), 1ll << 30);
  EXPECT_EQ(parse_bytes("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_bytes("8191PiB"), 8191ll << 50);
  EXPECT_EQ(parse_bytes("0.5KiB"), 512);
}

TEST(ParseBytes, RejectsAnythingElse) {
  for (const char* text : {"",          "MiB",
                           "x",         "-1",
                           "-1KiB",     "1e6",
                           "1 2",       "64Mi",
                           "64 miles",  "0.3B",
                           "0.0001KiB", "9223372036854775808",
                           "8192PiB",   "99999999999999999999",
                           "nan",       "inf",
                           "1..5",      "0x10",
                           "1,5GB",     "."})
    EXPECT_THROW(parse_bytes(text), UsageError) << text;
}

TEST(ParseSeconds, KnowsUnits) {
  EXPECT_DOUBLE_EQ(parse_seconds("30"), 30);
  EXPECT_DOUBLE_EQ(parse_seconds("30s"), 30);
  EXPECT_DOUBLE_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("20 us"), 2e-5);
  EXPECT_DOUBLE_EQ(parse_seconds("5ns"), 5e-9);
  EXPECT_DOUBLE_EQ(parse_seconds("2min"), 120);
  EXPECT_DOUBLE_EQ(parse_seconds("3m"), 180);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(parse_seconds("1e-3s"), 1e-3);
  for (const char* text : {"", "s", "-1s", "nan", "inf", "1e999", "1e308d", "3mo", "3 parsecs", "1 s s"})
    EXPECT_THROW(parse_seconds(text), UsageError) << text;
}

TEST(ParseFraction, KnowsPercent) {
  EXPECT_DOUBLE_EQ(parse_fraction("3%"), 0.03);
  EXPECT_DOUBLE_EQ(parse_fraction("0.03"), 0.03);
  EXPECT_DOUBLE_EQ(parse_fraction("-2 %"), -0.02);
  for (const char* text : {"", "%", "3%%", "nan", "a", "3s"}) EXPECT_THROW(parse_fraction(text), UsageError) << text;
}

TEST(ParseInteger, AcceptsOnlyDigits) {
  EXPECT_EQ(parse_integer("-12"), -12);
  for (const char* text : {"", "1.0", "1e3", "0x1", "9223372036854775808", "1 2", "+ 1"})
    EXPECT_THROW(parse_integer(text), UsageError) << text;
  EXPECT_DOUBLE_EQ(parse_real("-1.5e3"), -1500);
  for (const char* text : {"", "1.5x", "nan", "1e400"}) EXPECT_THROW(parse_real(text), UsageError) << text;
}

TEST(Format, IsHumanReadable) {
  EXPECT_EQ(format_bytes(8), "8 B");
  EXPECT_EQ(format_bytes(524288), "512 KiB");
  EXPECT_EQ(format_bytes(1.5 * 1048576), "1.5 MiB");
  EXPECT_EQ(format_bytes(2147483648.0), "2 GiB");
  EXPECT_EQ(format_seconds(8.5e-7), "850 ns");
  EXPECT_EQ(format_seconds(1.23e-5), "12.3 us");
  EXPECT_EQ(format_seconds(0.00456), "4.56 ms");
  EXPECT_EQ(format_seconds(7.89), "7.89 s");
  EXPECT_EQ(format_seconds(59.7), "1 min");
  EXPECT_EQ(format_seconds(141), "2 min 21 s");
  EXPECT_EQ(format_seconds(11100), "3 h 5 min");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_quantity(4.12e11, "FLOP/s"), "412 GFLOP/s");
  EXPECT_EQ(format_quantity(4.19e10, "B/s"), "41.9 GB/s");
  EXPECT_EQ(format_quantity(1.2e15, "FLOP/s"), "1.2 PFLOP/s");
  EXPECT_EQ(format_quantity(1024, "img/s"), "1,024 img/s");
  EXPECT_EQ(format_quantity(61625, "img/s", 12000), "61,625 img/s");
  EXPECT_EQ(format_quantity(123456, "img/s", 1000), "123 k img/s");
  EXPECT_EQ(format_quantity(1234567, "tokens/s"), "1.23 M tokens/s");
  EXPECT_EQ(format_quantity(0.97, "1"), "0.97");
  EXPECT_EQ(format_quantity(0, "B/s"), "0 B/s");
  EXPECT_EQ(format_quantity(0.0 / 0.0 * 1, "B/s"), "?");
  EXPECT_EQ(format_percent(0.006), "0.6 %");
  EXPECT_EQ(format_percent(0.974), "97 %");
}

TEST(Format, DigitsFollowTheInterval) {
  EXPECT_EQ(format_quantity(4.1234e11, "FLOP/s", 2.5e9), "412 GFLOP/s");
  EXPECT_EQ(format_quantity(4.1934e10, "B/s", 0.46e9), "41.9 GB/s");
  EXPECT_EQ(format_quantity(4.1934e10, "B/s", 0.05e9), "41.93 GB/s");
  EXPECT_EQ(format_quantity(4.1934e10, "B/s", 6e9), "42 GB/s");
  EXPECT_EQ(format_quantity(4.1e10, "B/s", 1e3), "41.00 GB/s");
  EXPECT_EQ(format_quantity(2e-6, "s", 1e-8), "2.00 us");
}

// Values that round up to 1000 use the next scale.
TEST(Format, NeverShowsAThousand) {
  EXPECT_EQ(format_quantity(9.999e11, "FLOP/s"), "1 TFLOP/s");
  EXPECT_EQ(format_quantity(9.99e11, "FLOP/s"), "999 GFLOP/s");
  EXPECT_EQ(format_seconds(0.9996), "1 s");
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"families", "plans", "models", "hardware", "m", "n", "k"};
  EXPECT_EQ(nearest("famlies", names), "families");
  EXPECT_EQ(nearest("palns", names), "plans");
  EXPECT_EQ(nearest("MODEL", names), "models");
  EXPECT_EQ(nearest("hard", names), "hardware");
  EXPECT_EQ(nearest("xyzzy", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(suggestion("plas", names), "; did you mean \"plans\"?");
  EXPECT_EQ(suggestion("xyzzy", names), "; valid: families, plans, models, hardware, m, n, k");
  EXPECT_EQ(suggestion("x", {}), "");
  EXPECT_EQ(edit_distance("abcd", "acbd"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(part_distance("m=1024", "gemm/dtype=f32/m=1025/n=7"), 1u);
  EXPECT_EQ(part_distance("", "abc"), 0u);
}

TEST(Text, StaysOnOneLine) {
  EXPECT_EQ(one_line("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(one_line("\xff\xc3\xa9"), "\\xff\xc3\xa9");
  EXPECT_EQ(one_line("abcdef", 3), "abc...");
  EXPECT_EQ(one_line("ab\xc3\xa9", 3), "ab...");
  EXPECT_EQ(in_quotes("x"), "\"x\"");
  EXPECT_TRUE(is_utf8("a\xc3\xa9\xe2\x82\xac"));
  EXPECT_FALSE(is_utf8("a\xc3"));
}

TEST(Text, LastLines) {
  EXPECT_EQ(last_lines("a\nb\nc\n\n", 1), "c");
  EXPECT_EQ(last_lines("a\nb\nc", 2), "b\nc");
  EXPECT_EQ(last_lines("a\nb\n", 5), "a\nb");
  EXPECT_EQ(last_lines("\nb", 2), "\nb");
  EXPECT_EQ(last_lines("\n", 1), "");
}

TEST(Flags, ErrorsNameTheFlag) {
  EXPECT_EQ(parse_flag("x: --n", "7", parse_integer), 7);
  EXPECT_EQ(test::refusal([] { parse_flag("x: --n", "7.5", parse_integer); }), "x: --n: \"7.5\" is not an integer");
}

TEST(Flags, APartIsLessThanAll) {
  EXPECT_DOUBLE_EQ(parse_part("--tolerance", "3%"), 0.03);
  EXPECT_DOUBLE_EQ(parse_part("--tolerance", "0"), 0);
  EXPECT_EQ(test::refusal([] { parse_part("--tolerance", "3"); }),
            "--tolerance: 3 is not a fraction from 0 to less than 100 %; did you mean 3%?");
  EXPECT_EQ(test::refusal([] { parse_part("--tolerance", "100%"); }),
            "--tolerance: 100% is not a fraction from 0 to less than 100 %");
}

TEST(Flags, ATimeLimitIsAboveZero) {
  EXPECT_DOUBLE_EQ(parse_timeout("--timeout", "2min"), 120);
  EXPECT_EQ(test::refusal([] { parse_timeout("--timeout", "0"); }), "--timeout 0: must be above 0");
}

}  // namespace
}  // namespace assay
