#include "harness/ab/where.h"

#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/process/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

namespace assay::ab {

namespace {

constexpr double report_seconds = 120;

// What one command's functions take; absent with a reason.
std::optional<std::map<std::string, double>> profiled(const std::string& perf, const std::string& command,
                                                      const std::string& file, const Runner& run_one,
                                                      double limit_seconds, std::string& why) {
  ProcessRun record;
  record.process = {
      .words = {perf, "record", "-q", "-e", "cpu-clock:u", "-F", "999", "-o", file, "--", "/bin/sh", "-c", command},
      .variables = variables_of_launcher()};
  record.limit_seconds = limit_seconds;
  const FinishedProcess recorded = run_one(record);
  if (!recorded.ended() || !recorded.problem.empty()) {
    const std::string said = one_line(last_lines(recorded.errors, 1), 200);
    why = said.empty() ? "perf record " + (recorded.ended() ? recorded.problem : "did not end") : said;
    return std::nullopt;
  }
  ProcessRun report;
  report.process = {.words = {perf, "report", "-i", file, "--stdio", "--no-children", "-F", "overhead,symbol"},
                    .variables = inherited_variables()};
  report.limit_seconds = report_seconds;
  const FinishedProcess printed = run_one(report);
  auto shares = shares_in_report(printed.output);
  if (!shares.empty()) return shares;
  why = "perf report names no function";
  return std::nullopt;
}

}  // namespace

std::map<std::string, double> shares_in_report(const std::string& report) {
  std::map<std::string, double> shares;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    char* end = nullptr;
    const double percent = std::strtod(line.c_str(), &end);
    if (end == line.c_str() || *end != '%') continue;
    std::string name(trim(std::string_view(end + 1)));
    if (name.starts_with("[") && name.size() > 4) name = std::string(trim(std::string_view(name).substr(3)));
    if (!name.empty() && !name.starts_with("0x")) shares[name] += percent / 100;
  }
  return shares;
}

std::vector<FunctionShares> largest_differences(const std::map<std::string, double>& a,
                                                const std::map<std::string, double>& b) {
  constexpr std::size_t max_functions = 5;
  constexpr double min_difference = 0.005;
  std::map<std::string, FunctionShares> all;
  for (const auto& [name, share] : a) all[name].a = share;
  for (const auto& [name, share] : b) all[name].b = share;
  std::vector<FunctionShares> sorted;
  for (auto& [name, one] : all) {
    one.name = name;
    if (std::abs(one.b - one.a) >= min_difference) sorted.push_back(one);
  }
  std::ranges::stable_sort(sorted,
                           [](const auto& x, const auto& y) { return std::abs(x.b - x.a) > std::abs(y.b - y.a); });
  sorted.resize(std::min(sorted.size(), max_functions));
  return sorted;
}

Where where_time_goes(const std::string& a, const std::string& b, const Runner& run_one, double limit_seconds) {
  const std::string perf = find_program("perf");
  if (perf.empty()) return {{}, "there is no perf on the PATH"};
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "assay-perf");
  Where where;
  const auto shares_a = profiled(perf, a, (folder.path() / "a").string(), run_one, limit_seconds, where.why);
  if (!shares_a) return where;
  const auto shares_b = profiled(perf, b, (folder.path() / "b").string(), run_one, limit_seconds, where.why);
  if (!shares_b) return where;
  where.functions = largest_differences(*shares_a, *shares_b);
  if (where.functions.empty()) where.why = "every function has the share of time that it had";
  return where;
}

std::string text_of(const Where& where) {
  if (where.functions.empty()) return "not known: " + where.why;
  constexpr std::size_t max_name = 60;
  std::vector<std::string> parts;
  for (const FunctionShares& one : where.functions)
    parts.push_back(fmt::format("{} {:.3g} % -> {:.3g} %", one_line(one.name, max_name), 100 * one.a, 100 * one.b));
  return joined(parts);
}

}  // namespace assay::ab
