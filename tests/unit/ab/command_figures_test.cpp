// What --metric of `assay ab` means.
#include "harness/ab/command_figures.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>

#include <tuple>

namespace assay::ab {
namespace {

TEST(CommandFigures, AreLinesOrElseTheTime) {
  CommandFigures lines("");
  const auto both = lines.read({"a 1 s lower\nb 2 B/s higher\n"}, 'A');
  EXPECT_EQ(lines.metric(), "lines");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].name, "b");
  EXPECT_EQ(both[1].value, 2);
  EXPECT_THROW(lines.read({"a: 1 s"}, 'B'), UsageError) << "what A's first output was counts";
  for (const CommandOutput& output : {CommandOutput{"a 1 s\n", true, 7}, CommandOutput{"a 1 s lower\n", false, 7}}) {
    CommandFigures time("");
    const auto figures = time.read(output, 'A');
    EXPECT_EQ(time.metric(), "time");
    EXPECT_EQ(figures.at(0).value, 7);
  }
}

TEST(CommandFigures, OfLinesOnlyTheCasesNamedCount) {
  CommandFigures one("lines", {"b"});
  EXPECT_EQ(one.read({"a 1 s lower\nb 2 s lower\nb 4 s lower\nb 9 s lower\n"}, 'A').at(0).value, 4);
  EXPECT_THROW(one.read({"a 1 s lower\n"}, 'A'), UsageError);
  EXPECT_THROW(one.read({"a 1 s lower\nb failed sum\n"}, 'A'), UsageError);
  EXPECT_THROW(CommandFigures("lines").read({""}, 'A'), UsageError);
  EXPECT_THROW(CommandFigures("lines").read({"a 1 s lower\n", false}, 'A'), UsageError);
}

TEST(CommandFigures, ACaseIsNeverTimed) {
  CommandFigures lines("", {"b"});
  EXPECT_EQ(lines.read({"b 2 s lower\n"}, 'A').at(0).value, 2);
  EXPECT_EQ(lines.metric(), "lines");
  for (const char* output : {"", "hello\n", "b 2 s lower\ndone in 3 s\n"}) try {
      CommandFigures("", {"b"}).read({output, true, 7}, 'A');
      ADD_FAILURE() << output;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("--case \"b\""), std::string::npos) << error.what();
    }
  EXPECT_THROW(CommandFigures("", {"b"}).read({"b failed sum\n"}, 'A'), UsageError);
  EXPECT_THROW(CommandFigures("", {"b"}).read({"b 2 s lower\n", false}, 'A'), UsageError);
}

// A tool whose outputs begin with "tool": two cases, the first with two metrics.
std::optional<ToolFigures> made_tool(const std::string& output, const std::string&) {
  if (!output.starts_with("tool")) return std::nullopt;
  FigureCollector all;
  for (const auto& [name, metric, value] :
       {std::tuple("a", "cpu_time", 1.0), {"a", "cpu_time", 3.0}, {"a", "real_time", 9.0}, {"b", "cpu_time", 5.0}}) {
    ForeignFigure one;
    one.name = name, one.metric = metric, one.unit = "s", one.better = Better::lower;
    all.add(one, value);
  }
  ForeignFigure broken;
  broken.name = "c";
  if (output == "tool fails") all.add_without(broken, Status::failed, "sum");
  return ToolFigures{"made", all.take()};
}

TEST(CommandFigures, OfAKnownToolAreTheFirstMetricOfEachCase) {
  CommandFigures tool("", {}, {}, made_tool);
  const auto all = tool.read({"tool"}, 'A');
  EXPECT_EQ(tool.metric(), "made");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].value, 2) << "the median of its samples";
  EXPECT_EQ(all[1].name, "b");
  EXPECT_THROW(tool.read({"another"}, 'B'), UsageError);
  EXPECT_THROW(tool.read({"tool fails"}, 'B'), UsageError);
  CommandFigures named("", {"a:real_time", "b"}, {}, made_tool);
  const auto two = named.read({"tool fails"}, 'A');
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "a:real_time");
  EXPECT_EQ(two[0].value, 9);
  EXPECT_THROW(CommandFigures("", {"gone"}, {}, made_tool).read({"tool"}, 'A'), UsageError);
  CommandFigures time("", {}, {}, made_tool);
  EXPECT_EQ(time.read({"other", true, 7}, 'A').at(0).value, 7);
}

TEST(CommandFigures, ANamedOneIsFoundAnywhere) {
  CommandFigures figures("x", {}, Better::lower);
  const Figure found = figures.read({"so x=5 J then"}, 'A').at(0);
  EXPECT_EQ(found.name, "x");
  EXPECT_EQ(found.value, 5);
  EXPECT_EQ(found.unit, "J");
  EXPECT_EQ(found.better, Better::lower);
  EXPECT_TRUE(figures.remarks().empty());
  figures.read({"{\"x\": 1}\n{\"x\": 2}"}, 'B');
  figures.read({"{\"x\": 1}\n{\"x\": 3}"}, 'B');
  EXPECT_EQ(figures.remarks().size(), 1u);
}

}  // namespace
}  // namespace assay::ab
