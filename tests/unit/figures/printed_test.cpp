// The one figure that --metric names in an output.
#include "harness/figures/printed.h"

#include "harness/core/error.h"
#include "harness/figures/foreign.h"
#include "harness/figures/mentions.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

PrintedFigure found(const std::string& text, const std::string& name = "rate", bool whole = true) {
  return printed_figure({text, whole}, {{name}}, "A");
}

// The error of an output without the figure; empty if there is none.
std::string refused(const std::string& text, const std::string& name = "rate", bool whole = true) {
  try {
    found(text, name, whole);
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("A"));
    return error.what();
  }
  return "";
}

const char* const gbench = R"(2026-01-01T00:00:00+00:00
{
  "context": {"date": "2026-01-01T00:00:00+00:00", "host_name": "box"},
  "benchmarks": [
    {"name": "sort/threads:4", "run_name": "sort/threads:4", "run_type": "iteration", "iterations": 9, "real_time": 2.0,
     "cpu_time": 4.0, "time_unit": "ms", "items_per_second": 7.0, "hits": 3},
    {"name": "sort/threads:4", "run_name": "sort/threads:4", "run_type": "iteration", "iterations": 9, "real_time": 4.0,
     "cpu_time": 4.0, "time_unit": "ms", "items_per_second": 9.0, "hits": 3},
    {"name": "sort/threads:4_mean", "run_name": "sort/threads:4", "run_type": "aggregate", "real_time": 9.0, "time_unit": "ms"},
    {"name": "sort/threads:4_cv", "run_name": "sort/threads:4", "run_type": "aggregate", "aggregate_unit": "percentage",
     "real_time": 0.5, "time_unit": "ms"},
    {"name": "copy", "error_occurred": true, "error_message": "no memory", "real_time": 0.0, "time_unit": "ns"}
  ]
}
)";

TEST(Printed, TheSameFigureInEveryForm) {
  for (const char* text : {
           "rate 5000 B/s higher\n",
           "rate 5000 B/s\n",
           "rate=5000B/s",
           "rate = 5,000 B/s\r\n",
           "rate: 5 kB/s\n",
           "[12:30:01] rate: 5e3 B/s (mean of 3)\n",
           "\x1b[1mrate\x1b[0m: \x1b[32m5 kB/s\x1b[0m\n",
           "10 %\r50 %\rrate: 5 kB/s\n",
           "rate: 1 B/s\rrate: 5 kB/s\rrate: 5 kB/s\n",
           "step 10, loss=0.5, rate=5000 B/s, lr=1e-4\n",
           "step 10 loss 0.5 rate 5000 B/s lr 1e-4\n",
           "{'rate': 5000 }\n",
           "done\n{\"rate\": 5000, \"unit\": \"B/s\", \"better\": \"higher\"}\n",
           "{\n \"rate\": 5000,\n \"unit\": \"B/s\"\n}\nbye\n",
           "RESULT {\"rate\": 5e3} of 1\n",
           "[\n {\"name\": \"rate\", \"value\": 5000},\n {\"name\": \"other\", \"value\": 1}\n]\n",
           "{\"rate\": {\"value\": 5000, \"unit\": \"B/s\"}}\nbye\n",
           "{\"metric\": \"rate\", \"value\": 5000}\n{\"metric\": \"other\", \"value\": 1}\n",
           "rate: 4 kB/s\nrate: 5 kB/s\nrate: 9 kB/s\n",
           "step 1 rate: 4 kB/s\nstep 2 rate: 5 kB/s\nstep 3 rate: 6 kB/s\n",
           "INFO rate: 5 kB/s\n",
           "eval/rate=5000 B/s\n",
           "a { brace\nrate: 5000\n",
           "rates: 7\nmy_rate: 8\nrate-limit: 9\nrate: 5000\n",
           "the rate is good\nrate: 5000\n",
           "rate:peak: 7\nrate: 5000\n",
           "# rate 9 B/s higher\nrate 5000 B/s higher\n",
       })
    EXPECT_DOUBLE_EQ(found(text).value, 5000) << text;
}

TEST(Printed, UnitsAreBaseUnitsExceptWhereAllIsSaid) {
  EXPECT_EQ(found("rate: 5 ms").unit, "s");
  EXPECT_EQ(found("rate 5 ms lower").unit, "ms");
  EXPECT_EQ(found("rate 5 ms lower").value, 5);
  EXPECT_EQ(found("rate 5 ms lower").better, Better::lower);
  EXPECT_EQ(found(R"({"rate": 5, "unit": "ms"})").unit, "ms");
  EXPECT_EQ(found("rate 5 widgets higher").unit, "widgets");
  EXPECT_FALSE(found("rate 5 widgets").unit);
  EXPECT_EQ(found("rate: 5 kB/s higher").better, Better::higher);
  EXPECT_EQ(found("rate: 1 ms\nrate: 2000 us\nrate 3 ms lower").value, 2e-3);
  EXPECT_THAT(refused("rate: 5 s\nrate: 5 B"), HasSubstr("several units"));
  EXPECT_THAT(refused("rate: 5 s\nrate: 5"), HasSubstr("several units"));
  EXPECT_THAT(refused("rate 5 s lower\nrate 5 s higher"), HasSubstr("several units or directions"));
}

TEST(Printed, ANameThatCouldBeSeveralIsRefused) {
  EXPECT_THAT(refused("train rate: 5\neval rate: 6\n"),
              testing::AllOf(HasSubstr("train rate"), HasSubstr("eval rate")));
  EXPECT_EQ(found("train rate: 5\neval rate: 6\n", "eval rate").value, 6);
  EXPECT_EQ(found("train rate: 5\nrate: 6\n").value, 6);
  EXPECT_THAT(refused(R"({"train": {"rate": 5}, "eval": {"rate": 6}})"), HasSubstr("\"train.rate\", \"eval.rate\""));
  EXPECT_EQ(found(R"({"train": {"rate": 5}, "eval": {"rate": 6}})", "eval.rate").value, 6);
  EXPECT_THAT(refused(R"([{"name": "a", "rate": 5}, {"name": "b", "rate": 6}])"), HasSubstr("a:rate"));
  EXPECT_THAT(refused(R"({"steps": [{"rate": 5}, {"rate": 6}]})"), HasSubstr("steps.0.rate"));
  EXPECT_THAT(refused("train/rate: 5\neval/rate: 6\n"), HasSubstr("eval/rate"));
}

TEST(Printed, TheLastLineCountsIfItIsAnObjectAndARemarkSaysSo) {
  const std::string lines = "{\"rate\": 1}\n{\"rate\": 2}\n";
  EXPECT_EQ(found(lines).value, 2);
  EXPECT_THAT(found(lines).remark, HasSubstr("more than once"));
  EXPECT_EQ(found("{\"rate\": 2}\n").remark, "");
  EXPECT_EQ(found("{\"rate\": 1}\n{\"rate\": 2}\nbye\n").values, (std::vector<double>{1, 2}));
  EXPECT_EQ(found("rate: 7\n{\"value\": 2}\n").value, 2);
  EXPECT_THAT(found("rate: 7\n{\"value\": 2}\n").remark, HasSubstr("last line"));
  EXPECT_EQ(found("rate: 7\n{\"value\": 2, \"metric\": \"loss\"}\n").value, 7);
  EXPECT_THAT(found("{\"value\": 2, \"metric\": \"loss\"}").remark, HasSubstr("loss"));
}

TEST(Printed, WhatIsNoNumberIsSaid) {
  for (const char* text :
       {"rate: nan", "rate=inf", "rate nan", "rate -inf B/s higher", "rate: unknown", "rate:", "rate: 1,5",
        "rate: 12:30", "rate 1,5", "rate: <5", "rate failed wrong sum", "rate: 5\nrate: nan", R"({"rate": null})",
        R"({"rate": NaN})", R"({"rate": "5"})", R"({"rate": true})", "rate is good"})
    EXPECT_THAT(refused(text), testing::AnyOf(HasSubstr("has no number"))) << text;
  EXPECT_THAT(refused("rate: nan"), HasSubstr("nan"));
  EXPECT_THAT(refused("rate failed wrong sum"), HasSubstr("failed wrong sum"));
  EXPECT_THAT(refused(R"({"rate": {}})"), HasSubstr("no figure"));
}

TEST(Printed, AMissingNameIsSaidWithTheNearestOnes) {
  EXPECT_THAT(refused("rates: 5"), HasSubstr("did you mean \"rates\"?"));
  EXPECT_THAT(refused("rates 5 B/s higher\n"), HasSubstr("did you mean \"rates\"?"));
  EXPECT_THAT(refused(R"({"train": {"rates": 5}})", "train.rate"), HasSubstr("did you mean \"train.rates\"?"));
  EXPECT_THAT(refused("loss: 5, accuracy=7"), HasSubstr("valid: loss, accuracy"));
  EXPECT_THAT(refused(""), HasSubstr("nothing"));
  EXPECT_THAT(refused("fast"), HasSubstr("\"fast\""));
  EXPECT_THAT(refused("fast", "rate", false), HasSubstr("too long"));
  EXPECT_THAT(refused(gbench, "gbench:sort/threads:real_time"), HasSubstr("gbench:sort/threads:4:real_time"));
}

TEST(Printed, OutputThatWasCutSaysSo) {
  EXPECT_EQ(found("rate: 5", "rate", false).value, 5);
  EXPECT_THAT(found("rate: 5", "rate", false).remark, HasSubstr("too long"));
  EXPECT_EQ(found("rate: 5").remark, "");
}

TEST(Printed, GoogleBenchmarksFigures) {
  const PrintedFigure time = found(gbench, "gbench:sort/threads:4:real_time");
  EXPECT_EQ(time.values, (std::vector<double>{2e-3, 4e-3}));
  EXPECT_EQ(time.unit, "s");
  EXPECT_EQ(time.better, Better::lower);
  EXPECT_EQ(time.case_name, "sort/threads:4");
  EXPECT_EQ(time.metric, "real_time");
  EXPECT_EQ(found(gbench, "gbench:sort/threads:4:cpu_time").value, 4e-3);
  EXPECT_EQ(found(gbench, "gbench:sort/threads:4:items_per_second").better, Better::higher);
  EXPECT_FALSE(found(gbench, "gbench:sort/threads:4:hits").better);
  EXPECT_THAT(refused(gbench, "gbench:copy:hits"), HasSubstr("no memory"));
  EXPECT_THAT(refused(gbench, "real_time"), HasSubstr("no figure"));
}

TEST(Printed, UnitAndDirectionThatAreWantedTellFiguresOfOneNameApart) {
  const std::string text = "x 1 s lower\nx 2 B/s higher\n";
  EXPECT_EQ(printed_figure({text}, {{"x"}, "B/s"}, "A").value, 2);
  EXPECT_EQ(printed_figure({text}, {{"x"}, "ms"}, "A").value, 1);
  EXPECT_FALSE(find_figure({text}, {{"x"}, "W"}, "A"));
  EXPECT_THROW(printed_figure({text}, {{"x"}, "s", Better::higher}, "A"), UsageError);
  EXPECT_FALSE(find_figure({"the x 1 s lower\n"}, {{"x"}, {}, {}, true}, "A"));
  EXPECT_TRUE(find_figure({"the x 1 s lower\n"}, {{"x"}}, "A"));
}

TEST(Printed, TheDirectionIsPrintedOrGivenOrThatOfTheUnit) {
  const auto better = [](const char* text, std::optional<Better> said = {}) {
    return *named_figure({text}, "x", said, "A").better;
  };
  EXPECT_EQ(better("x 1 s higher"), Better::higher);
  EXPECT_EQ(better("x: 1 ms"), Better::lower);
  EXPECT_EQ(better(R"({"x": 1, "unit": "ms"})"), Better::lower);
  EXPECT_EQ(better("x: 1 ms/step"), Better::lower);
  EXPECT_EQ(better("x: 1 tokens/s"), Better::higher);
  EXPECT_EQ(better("x: 1", Better::lower), Better::lower);
  EXPECT_THROW(better("x: 1"), UsageError);
  EXPECT_THROW(better("x: 1 GiB"), UsageError);
  EXPECT_THROW(better("x 1 s higher", Better::lower), UsageError);
  EXPECT_EQ(named_figure({"x: 1"}, "x", Better::lower, "A").unit, "1");
}

TEST(Printed, LongAndOddOutputsAreReadInLinearTime) {
  const std::size_t many = 30000;
  std::string braces(many, '{'), names, objects, open;
  for (std::size_t i = 0; i < many; ++i) names += "rate,rate:", objects += "{\"a\": 1}\n", open += "{ x\n";
  for (const std::string& text : {braces, names, objects, open, std::string(many, ':'),
                                  "rate:" + std::string(many, '5'), "rate " + std::string(many, 'x')})
    EXPECT_NE(refused(text), "");
}

TEST(Lines, KeepUnitsAndTakeNumbersAsPeopleWriteThem) {
  const auto figures = read_lines("# a\n\x1b[32msort\x1b[0m 1,500 ms lower\r\n50 %\rcopy 2 x higher\n", "f").figures();
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "sort");
  EXPECT_EQ(figures[0].values, (std::vector<double>{1500}));
  EXPECT_EQ(figures[0].unit, "ms");
  EXPECT_EQ(figures[1].name, "copy");
  EXPECT_THROW(read_lines("a 1 s lower\rb 2 s lower\r", "f"), UsageError) << "one would hide the other";
  EXPECT_THROW(read_lines("a nan s lower", "f"), UsageError);
  EXPECT_THROW(read_lines("a 1,5 s lower", "f"), UsageError);
}

TEST(VisibleText, IsWhatATerminalShows) {
  EXPECT_EQ(visible_text("a\rb\r\nc\r"), "b\nc");
  EXPECT_EQ(visible_text("\x1b[1;31mred\x1b[0m\x1b[K\n"), "red\n");
  EXPECT_EQ(visible_text("\x1b]0;title\a1\x1b]8;;link\x1b\\2"), "12");
  EXPECT_EQ(visible_text("\x1b(B1\x1b=2\x1b"), "12");
  EXPECT_EQ(visible_text("\x1b[31\n1"), "\n1");
}

}  // namespace
}  // namespace assay
