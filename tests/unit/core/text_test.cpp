#include "harness/core/text.h"

#include "harness/core/words.h"

#include <gtest/gtest.h>

#include <array>

namespace assay {
namespace {

TEST(Text, OneIsSingular) {
  EXPECT_EQ(plural(1, "case"), "1 case");
  EXPECT_EQ(plural(0, "case"), "0 cases");
  EXPECT_EQ(plural(2, "case"), "2 cases");
}

TEST(Text, NamesTheFirstFew) {
  EXPECT_EQ(first_few({}, 2), "");
  EXPECT_EQ(first_few({"a", "b"}, 2), "a, b");
  EXPECT_EQ(first_few({"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(first_few({"a", "b", "c", "d"}), "a, b, c and 1 more");
  EXPECT_EQ(first_few({"a", "b", "c"}, 2, "; "), "a; b and 1 more");
  EXPECT_EQ(and_more(2, 2), "");
  EXPECT_EQ(and_more(5, 2), " and 3 more");
}

TEST(Text, FirstLine) {
  EXPECT_EQ(first_line("a\nb\n"), "a");
  EXPECT_EQ(first_line("a"), "a");
  EXPECT_EQ(first_line(""), "");
}

TEST(Text, TrimsAndLowers) {
  EXPECT_EQ(trim(" \ta b\n"), "a b");
  EXPECT_EQ(trim(" \t"), "");
  EXPECT_EQ(lower_case("GPU-5fD4"), "gpu-5fd4");
}

TEST(Text, Joins) {
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(joined(std::vector<int>{1, 2, 4}, "+"), "1+2+4");
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
}

enum class Colour { red, green };
constexpr auto words(Colour) { return std::to_array<std::string_view>({"red", "green"}); }

TEST(Words, GoBothWays) {
  EXPECT_EQ(name_of(Colour::green), "green");
  EXPECT_EQ(from_word<Colour>("green"), Colour::green);
  EXPECT_FALSE(from_word<Colour>("blue"));
  EXPECT_FALSE(from_word<Colour>(""));
}

}  // namespace
}  // namespace assay
