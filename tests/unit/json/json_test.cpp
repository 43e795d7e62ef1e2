#include "harness/json/json.h"

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

namespace assay {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(std::string_view text) {
  return test::refusal([&] { parse_json(text, "f.json"); });
}

TEST(ParseJson, AcceptsCommentsAndKeepsOrder) {
  const Json json =
      parse_json("// head\n{\"b\":1, /* in */ \"a\":[true,null,-2,3.5,\"x\\u00e9\"]}\n// tail\n", "f.json");
  EXPECT_EQ(json.dump(), "{\"b\":1,\"a\":[true,null,-2,3.5,\"x\xc3\xa9\"]}");
}

TEST(ParseJson, GivesLineAndColumnOfSyntaxErrors) {
  EXPECT_THAT(refusal("{\"a\":1,\n  \"b\":tru}"), StartsWith("f.json:2:"));
  EXPECT_THAT(refusal("[1,2"), StartsWith("f.json:1:5: "));
  EXPECT_THAT(refusal("{} x"), AllOf(StartsWith("f.json:1:4"), HasSubstr("expected end of input")));
  EXPECT_THAT(refusal("{\"a\":1,}"), StartsWith("f.json:1:8"));
  EXPECT_THAT(refusal("{a:1}"), StartsWith("f.json:1:2"));
  EXPECT_THAT(refusal("[1e999]"), HasSubstr("number overflow"));
  EXPECT_THAT(refusal("[NaN]"), StartsWith("f.json:1:"));
  EXPECT_THAT(refusal("/* open"), StartsWith("f.json:1:"));
  EXPECT_EQ(refusal(" \n"), "f.json: empty");
}

TEST(ParseJson, RejectsDuplicateKeys) {
  EXPECT_EQ(refusal("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}"), "f.json: /b/c: key \"c\" appears twice");
  EXPECT_EQ(refusal("[0,{\"x/y\":1,\"x/y\":1}]"), "f.json: /1/x~1y: key \"x/y\" appears twice");
  EXPECT_EQ(refusal("{\"a\":{\"a\":1},\"b\":{\"a\":1}}"), "");
}

TEST(ParseJson, LimitsDepth) {
  const auto nested = [](int n) {
    return std::string(static_cast<std::size_t>(n), '[') + std::string(static_cast<std::size_t>(n), ']');
  };
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_THAT(refusal(nested(65)), EndsWith("nested deeper than 64 levels"));
  EXPECT_THAT(refusal(std::string(1000000, '[')), EndsWith("nested deeper than 64 levels"));
  EXPECT_THAT(refusal("[[[{\"key\":" + std::string(1000000, '{')), StartsWith("f.json"));
}

TEST(ParseJson, RejectsInvalidUtf8InOneLine) {
  const std::string what = refusal("{\"a\":\"\xff\n\"}");
  EXPECT_THAT(what, StartsWith("f.json:1:"));
  EXPECT_EQ(what.find('\n'), std::string::npos);
}

// Any bytes either parse or throw UsageError; nothing crashes, nothing else is thrown.
TEST(ParseJson, SurvivesGarbage) {
  const std::string alphabet = "{}[]\",:0123456789.eE+-truefalsn/* \n\\u\xc3\xa9\xff\x01";
  const std::string seed = "{\"schema\":1,\"name\":\"x\",\"cases\":[{\"family\":\"gemm\",\"m\":[1,2.5e3,-7]}]} // end";
  const Rng rng(3, "garbage");
  int parsed = 0, refused = 0;
  for (std::uint64_t trial = 0; trial < 20000; ++trial) {
    std::string text = seed;
    if (trial % 2) {
      text.clear();
      for (std::uint64_t i = 0, n = rng.below(trial * 100, 40); i < n; ++i)
        text += alphabet[rng.below(trial * 100 + 1 + i, alphabet.size())];
    } else {
      for (std::uint64_t i = 0; i < 1 + trial % 5; ++i)
        text[rng.below(trial * 100 + 2 * i, text.size())] = static_cast<char>(rng.below(trial * 100 + 2 * i + 1, 256));
    }
    try {
      parse_json(text, "f.json");
      ++parsed;
    } catch (const UsageError& error) {
      ++refused;
      EXPECT_THAT(error.what(), StartsWith("f.json")) << text;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << text;
    }
  }
  EXPECT_GT(parsed, 0);
  EXPECT_GT(refused, 10000);
}

TEST(ReadJson, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(test::refusal([] { read_json("/nowhere/x.json"); }), "/nowhere/x.json: no such file");
  EXPECT_THAT(test::refusal([] { read_json("/"); }), HasSubstr("is a folder"));
  EXPECT_THAT(test::refusal([] { read_json("/dev/null"); }), HasSubstr("/dev/null: it is a device"));
  EXPECT_THAT(test::refusal([] { read_json("/dev/zero"); }), HasSubstr("/dev/zero: it is a device"));
  const std::string path = testing::TempDir() + "/unreadable.json";
  std::ofstream(path) << "{}";
  chmod(path.c_str(), 0);
  if (geteuid() != 0) {  // root reads everything
    EXPECT_THAT(test::refusal([&] { read_json(path); }), HasSubstr("Permission denied"));
  }
  chmod(path.c_str(), 0600);
  EXPECT_EQ(read_json(path), Json::object());
}

// --- the cursor ---------------------------------------------------------------------------------------------------

TEST(Cursor, CollectsEveryProblem) {
  const Json json =
      parse_json(R"({"nme":"x","ranks":[1,"2",0],"seed":1.5,"on":1,"time":"3 parsecs","kind":"cpuu"})", "f.json");
  Problems problems("f.json");
  const Cursor root(json, problems);
  const std::vector<std::string> names = {"name", "ranks", "seed", "on", "time", "kind"};
  const std::vector<std::string> kinds = {"cpu", "cuda"};
  root.only(names);
  EXPECT_FALSE(root.need("name"));
  for (const Cursor& rank : root.find("ranks")->elements()) rank.integer(1, 10);
  EXPECT_FALSE(root.find("seed")->integer());
  EXPECT_FALSE(root.find("on")->flag());
  EXPECT_FALSE(root.find("time")->quantity(parse_seconds, 0, 1e9));
  EXPECT_FALSE(root.find("kind")->choice(kinds));
  EXPECT_EQ(problems.count(), 8u);
  EXPECT_EQ(test::refusal([&] { problems.raise(); }),
            "f.json: /nme: unknown key \"nme\"; did you mean \"name\"?\n"
            "f.json: \"name\" is missing\n"
            "f.json: /ranks/1: must be an integer, is text\n"
            "f.json: /ranks/2: 0 is too small: at least 1\n"
            "f.json: /seed: must be an integer, is a fractional number\n"
            "f.json: /on: must be true or false, is an integer\n"
            "f.json: /time: \"3 parsecs\" is not a time (\"30s\", \"500ms\", \"2min\")\n"
            "f.json: /kind: \"cpuu\" is not a valid value; did you mean \"cpu\"?");
}

TEST(Cursor, ReadsValidMembers) {
  const Json json = parse_json(R"({"a":7,"b":"64MiB","c":[true],"d":18446744073709551615})", "f.json");
  Problems problems("f.json");
  const Cursor root(json, problems);
  EXPECT_EQ(root.find("a")->integer(), 7);
  EXPECT_EQ(root.find("a")->number(0, 10), 7.0);
  EXPECT_EQ(root.find("b")->text(), "64MiB");
  EXPECT_EQ(root.find("c")->elements().at(0).flag(), true);
  EXPECT_EQ(root.find("c")->elements().at(0).pointer(), "/c/0");
  EXPECT_EQ(root.members().size(), 4u);
  EXPECT_TRUE(problems.empty());
  EXPECT_FALSE(root.find("d")->integer());
  EXPECT_THAT(test::refusal([&] { problems.raise(); }), HasSubstr("18446744073709551615 is too large"));
}

TEST(ReadStrictly, SaysAllThatIsWrongAndNothingOfAnotherSchema) {
  const auto refused = [](const char* text) {
    return test::refusal([&] {
      read_strictly(parse_json(text, "f"), "f", 1, {"schema", "name"}, [](const Cursor& root) {
        if (root.text_of("name").empty()) root.error("has no name to speak of");
        return root.need_text("name");
      });
    });
  };
  EXPECT_EQ(refused(R"({"schema": 1, "nam": 2})"),
            "f: /nam: unknown key \"nam\"; did you mean \"name\"?\n"
            "f: has no name to speak of\n"
            "f: \"name\" is missing");
  const std::string other = refused(R"({"schema": 2, "nam": 2})");
  EXPECT_THAT(other, HasSubstr("/schema"));
  EXPECT_EQ(other.find("/nam:"), other.npos);
}

TEST(OrNull, IsNullForWhatIsEmpty) {
  EXPECT_EQ(or_null(std::string()), Json());
  EXPECT_EQ(or_null(std::string("a")), Json("a"));
  EXPECT_EQ(or_null(std::optional<double>()), Json());
  EXPECT_EQ(or_null(std::optional<double>(2)), Json(2.0));
}

TEST(Problems, ListsFiftyAndCountsTheRest) {
  Problems problems("f");
  for (int i = 0; i < 60; ++i) problems.add("/" + std::to_string(i), "wrong");
  const std::string all = test::refusal([&] { problems.raise(); });
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 50);
  EXPECT_THAT(all, EndsWith("f: and 10 more errors"));
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

struct Part {
  std::int64_t whole = 7;
  std::uint64_t natural = 0;
  std::optional<std::string> text;
  static void members(auto& self, auto& io) {
    io("whole", self.whole), io("natural", self.natural), io.sparse("text", self.text);
  }
};
struct Form {
  std::vector<Part> parts;
  std::vector<double> figures;
  std::map<std::string, std::string> names;
  static void members(auto& self, auto& io) {
    io.required("parts", self.parts), io("figures", self.figures), io("names", self.names);
  }
};

TEST(Members, AStructIsReadAsItWasWritten) {
  const std::string text = R"({"parts":[{"whole":-9223372036854775808,"natural":18446744073709551615},)"
                           R"({"whole":7,"natural":0,"text":"\u00fc"}],"figures":[1.5,null],"names":{"a":"b"}})";
  const auto form = read_text<Form>(text);
  EXPECT_TRUE(std::isnan(form.figures[1]));
  EXPECT_EQ(read_value<Form>(json_of(form)).parts[1].text, "\u00fc");
  EXPECT_EQ(json_of(form), parse_untrusted(text));
  EXPECT_EQ(read_text<Form>(R"({"parts":[{"whole":null}],"later":[{}]})").parts[0].whole, 7);
}

TEST(Members, ErrorsNameThePlace) {
  const auto refusal = [](const char* text) { return test::refusal<Error>([&] { (void)read_text<Form>(text); }); };
  EXPECT_EQ(refusal("{}"), "parts: missing");
  EXPECT_EQ(refusal("7"), "not an object");
  EXPECT_EQ(refusal("{\"parts\":[}"), "not JSON");
  EXPECT_EQ(refusal(R"({"parts":[{},{"whole":1.5}]})"), "parts[1].whole: not an integer");
  EXPECT_EQ(refusal(R"({"parts":[{"natural":-1}]})"), "parts[0].natural: not an integer from 0 on");
  EXPECT_EQ(refusal(R"({"parts":[],"figures":[1,"x"]})"), "figures: not a list of numbers");
  EXPECT_EQ(refusal(R"({"parts":[],"names":{"a":1}})"), "names.a: not a string");
}

enum class Light { red, green };
constexpr auto words(Light) { return std::to_array<std::string_view>({"red", "green"}); }
struct Signal {
  Light colour = Light::red;
  std::optional<double> since;  // Unix seconds
  static void members(auto& self, auto& io) { io("colour", self.colour), io.utc("since", self.since); }
};

TEST(Members, EnumsAreTheirWordsAndMomentsAreInUtc) {
  const std::string text = R"({"colour":"green","since":"2026-11-20T03:12:44Z"})";
  const auto signal = read_text<Signal>(text);
  EXPECT_EQ(signal.colour, Light::green);
  EXPECT_EQ(signal.since, 1795144364.0);
  EXPECT_EQ(dump_line(json_of(signal)), text);
  EXPECT_EQ(dump_line(json_of(Signal())), R"({"colour":"red","since":null})");
  EXPECT_FALSE(read_text<Signal>(R"({"since":null})").since);
  const auto refusal = [](const char* bad) { return test::refusal<Error>([&] { (void)read_text<Signal>(bad); }); };
  EXPECT_EQ(refusal(R"({"colour":"blue"})"), "colour: not one of red, green");
  EXPECT_EQ(refusal(R"({"colour":1})"), "colour: not a string");
  EXPECT_EQ(refusal(R"({"since":"yesterday"})"), "since: not a time in UTC");
  EXPECT_EQ(refusal(R"({"since":7})"), "since: not a string");
}

}  // namespace
}  // namespace assay
