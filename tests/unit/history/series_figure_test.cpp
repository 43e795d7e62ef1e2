// The figure of a series in what a command prints.
#include "harness/history/series_figure.h"

#include "harness/core/error.h"
#include "tests/unit/history/made.h"

#include <gmock/gmock.h>

#include <string>

namespace assay::history {
namespace {

using testing::HasSubstr;

// Two cases of one tool, whose throughput the history has.
History two_cases(const std::string& second_metric = "throughput") {
  test::Made made;
  for (const char* key : {"imported/sort", "imported/copy"}) {
    made.run("box", 0);
    made.point(made.series("box", key), 100);
  }
  if (second_metric != "throughput") {
    store::Series more = made.contents.series[0];
    more.number = 3, more.identity.metric = second_metric;
    made.contents.series.push_back(more);
  }
  return test::history_of(made.contents);
}

std::size_t index_of(const History& history, const std::string& key, const std::string& metric = "throughput") {
  for (std::size_t i = 0; i < history.series.size(); ++i)
    if (history.series[i].identity.key == key && history.series[i].identity.metric == metric) return i;
  return history.series.size();
}

class OfSort : public testing::Test {
 protected:
  History history = two_cases();
  std::size_t sort = index_of(history, "imported/sort"), copy = index_of(history, "imported/copy");

  double read(const std::string& text, const std::string& metric = "") {
    return SeriesFigure(history, {sort}, metric).read({text, true, 7}, 'A').value;
  }
  std::string refused(const std::string& text, const std::string& metric = "") {
    try {
      read(text, metric);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(OfSort, IsNamedAsTheCaseOrTheMetric) {
  for (const char* text : {"sort 5e9 FLOP/s higher\ncopy 7 FLOP/s higher\n", "imported/sort 5 GFLOP/s higher\n",
                           "sort: 5 GFLOP/s\ncopy=7\n", "sort:throughput 5e9 FLOP/s higher\n",
                           "{\"throughput\": 5e9, \"better\": \"higher\"}\n",
                           "{\"throughput\": 5, \"unit\": \"GFLOP/s\", \"case\": \"sort\"}\n",
                           "throughput: 5 GFLOP/s\n", "{\"value\": 5e9}\n",
                           "{\"case\": \"sort\", \"throughput\": 5e9}\n{\"case\": \"copy\", \"throughput\": 7}\nbye\n"})
    EXPECT_DOUBLE_EQ(read(text), 5e9) << text;
  EXPECT_DOUBLE_EQ(read("speed: 5 GFLOP/s", "speed"), 5e9);
  EXPECT_DOUBLE_EQ(read("sort: 5 GFLOP/s", "sort"), 5e9);
  EXPECT_DOUBLE_EQ(read("sort: 5 GFLOP/s", "lines"), 5e9);
}

TEST_F(OfSort, IsNeverAnothersFigure) {
  EXPECT_THAT(refused("copy: 5 GFLOP/s"), HasSubstr("\"sort\""));
  EXPECT_THAT(refused("copy throughput: 5 GFLOP/s"), HasSubstr("copy throughput"));
  EXPECT_THAT(refused("{\"throughput\": 5, \"case\": \"copy\"}"), HasSubstr("\"case\""));
  EXPECT_THAT(refused("{\"throughput\": 5, \"metric\": \"latency\"}"), HasSubstr("\"metric\""));
  EXPECT_THAT(refused("{\"throughput\": 5, \"unit\": \"s\"}"), HasSubstr("\"unit\""));
  EXPECT_THAT(refused("{\"throughput\": 5, \"better\": \"lower\"}"), HasSubstr("\"better\""));
  EXPECT_THAT(refused("sort 5 s lower"), HasSubstr("in s"));
  EXPECT_THAT(refused("sort: nan"), HasSubstr("nan"));
  EXPECT_THAT(refused("sort 1 FLOP/s higher\nimported/sort 2 FLOP/s higher"), HasSubstr("several"));
  EXPECT_THAT(refused("throughput: 5", "lines"), HasSubstr("\"sort\""));
  EXPECT_THROW(SeriesFigure(history, {sort}, "time"), UsageError);
  EXPECT_THROW(SeriesFigure(history, {sort}, "copy"), UsageError);
  EXPECT_THROW(SeriesFigure(history, {sort}, "gbench:copy:throughput"), UsageError);
}

TEST_F(OfSort, TheFirstSeriesThatIsPrintedIsReadFromThenOn) {
  SeriesFigure figure(history, {sort, copy}, "");
  EXPECT_EQ(figure.read({"copy: 7 FLOP/s"}, 'A').value, 7);
  EXPECT_EQ(figure.series(), copy);
  EXPECT_THROW(figure.read({"sort: 7 FLOP/s"}, 'B'), UsageError);
}

TEST(SeriesFigure, OfACaseWithTwoSuchMetricsNamesTheMetric) {
  const History history = two_cases("bandwidth");
  SeriesFigure figure(history, {index_of(history, "imported/sort")}, "");
  EXPECT_THROW(figure.read({"sort 5 FLOP/s higher"}, 'A'), UsageError);
  EXPECT_EQ(figure.read({"sort:throughput 5 FLOP/s higher\nsort:bandwidth 6 FLOP/s higher"}, 'A').value, 5);
  EXPECT_THROW(SeriesFigure(history, {index_of(history, "imported/sort")}, "sort"), UsageError);
}

TEST(SeriesFigure, OfGoogleBenchmarkIsFoundByItself) {
  test::Made made;
  made.run("box", 0);
  store::Series& series = made.series("box", "imported/BM_sort", Better::lower);
  series.identity.metric = "real_time", series.identity.unit = "s";
  made.point(series, 1);
  const History history = test::history_of(made.contents);
  const std::string text = R"({"benchmarks": [{"name": "BM_sort", "real_time": 5, "time_unit": "ms"},
                                              {"name": "BM_copy", "real_time": 7, "time_unit": "ms"}]})";
  for (const char* metric : {"", "gbench:BM_sort:real_time"})
    EXPECT_DOUBLE_EQ(SeriesFigure(history, {0}, metric).read({text}, 'A').value, 5e-3) << metric;
  EXPECT_EQ(SeriesFigure(history, {0}, "time").read({text, true, 7}, 'A').value, 7);
}

}  // namespace
}  // namespace assay::history
