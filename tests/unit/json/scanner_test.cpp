// Reading JSON from its text: as strict as a parser, and of one mind with it.
#include "harness/json/scanner.h"
#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/json/members.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace assay {
namespace {

// The value as a tree, by the scanner alone.
Json tree(JsonScanner& scan) {
  switch (scan.peek()) {
    case '{': {
      Json object = Json::object();
      scan.members([&](std::string_view name) {
        std::string owned(name);
        object[owned] = tree(scan);
      });
      return object;
    }
    case '[': {
      Json list = Json::array();
      scan.elements("a list", [&] { list.push_back(tree(scan)); });
      return list;
    }
    case '"': return std::string(scan.string());
    case 't':
    case 'f': return scan.boolean();
    case 'n': return scan.null() ? Json(nullptr) : Json("unreachable");
    default: {
      const JsonScanner::Number number = scan.number();
      if (!number.integer) return number.real;
      if (number.negative) return -static_cast<std::int64_t>(number.magnitude);
      return number.magnitude;
    }
  }
}

std::string read(std::string_view text) {
  try {
    JsonScanner scan(text);
    const Json json = tree(scan);
    scan.finish();
    return dump_line(json);
  } catch (const Error&) {
  } catch (const Mismatch&) {
  }
  return "refused";
}

std::string parsed(std::string_view text) {
  try {
    return dump_line(parse_untrusted(text));
  } catch (const Error&) {
    return "refused";
  }
}

TEST(JsonScanner, AgreesWithTheParser) {
  for (const char* text : {"{}",
                           "[]",
                           " [ 1 , -2 , 3.5e2 , 1e-400 , 18446744073709551615 , 18446744073709551616 ] ",
                           "-0",
                           "0.0",
                           "-1.5E+3",
                           R"({"a":{"b":[true,false,null,"x"]},"":1})",
                           R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")",
                           "\"\u00e9\u20ac\U0001F600\"",
                           R"({"\u0061":1})",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "--1",
                           "1e999",
                           "nul",
                           "truex",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\"}",
                           "[1 2]",
                           "\"",
                           "\"\\x\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\u12g4\"",
                           "\"\n\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf5\x80\x80\x80\"",
                           "\"\xe2\x82\"",
                           "",
                           " ",
                           "1 1",
                           "]",
                           "\"a\"b",
                           "NaN"})
    EXPECT_EQ(read(text), parsed(text)) << text;
}

TEST(JsonScanner, NestingIsBounded) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_NE(read(nested(64)), "refused");
  EXPECT_EQ(read(nested(65)), "refused");
  const std::string deep(1000000, '[');
  JsonScanner scan(deep);
  EXPECT_THROW((void)scan.skip(), Error);
}

// Whatever bytes are changed, scanner and parser take the same texts and see the same values in them.
TEST(JsonScanner, AgreesWithTheParserOnHostileBytes) {
  const std::string line = R"({"key":"gemm/m=1","n":[1,-2.5,3e7,null,true],"s":"a\u00e9\n\ud83d\ude00)"
                           "\u00fc"
                           R"(","o":{"x":{},"y":[]}})";
  ASSERT_NE(read(line), "refused");
  const Rng rng(5, "scanner");
  int taken = 0;
  for (std::uint64_t trial = 0; trial < 20000; ++trial) {
    std::string text = line;
    for (std::uint64_t change = 0; change <= trial % 3; ++change) {
      const std::uint64_t place = rng.below(trial * 8 + change * 2, text.size());
      constexpr std::string_view likely = "{}[],:\"\\0123456789.eE+-untrf \x80\xc3";
      const std::uint64_t which = rng.below(trial * 8 + change * 2 + 1, 256);
      text[place] = which < 128 ? likely[which % likely.size()] : static_cast<char>(which);
    }
    const std::string seen = read(text);
    taken += seen != "refused";
    ASSERT_EQ(seen, parsed(text)) << text;
  }
  EXPECT_GT(taken, 500);
}

TEST(JsonPool, EqualTextsShareOneValueAndWritingDoesNot) {
  JsonPool pool;
  SharedJson a = pool.get(R"({"m":1})");
  const SharedJson b = pool.get(R"({"m":1})");
  EXPECT_EQ(&a.get(), &b.get());
  a["m"] = 2;
  EXPECT_EQ(b.at("m"), 1);
  EXPECT_EQ(a.at("m"), 2);
  EXPECT_TRUE(SharedJson().is_null());
}

}  // namespace
}  // namespace assay
