// assay crosscheck: our figures beside those of nccl-tests and nvbandwidth, in alternation on this machine.
#include "cli/command.h"
#include "cli/options.h"
#include "cli/peer_tools.h"
#include "harness/core/files.h"
#include "harness/core/module.h"
#include "harness/core/program.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/device/device.h"
#include "harness/json/json.h"
#include "harness/process/run.h"
#include "harness/statistics/statistics.h"
#include "reports/model/cells.h"
#include "reports/render/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t factor = 16;  // between sizes
constexpr std::int64_t mebibyte = 1 << 20;
constexpr int min_pairs = 6;  // fewer have no 95 % interval
constexpr double limit_seconds = 600;

struct CrosscheckOptions {
  Outputs outputs;
  int pairs = 9;
  std::string tolerance = "2%", from = "1KiB", to = "1GiB";
};

constexpr const char* crosscheck_footer =
    "Looks for all_reduce_perf (nccl-tests) and nvbandwidth on the PATH. A ratio is ours over the\n"
    "tool's, the median of the pairs with its 95 % interval. Exit codes: 0 every interval is within\n"
    "the tolerance; 1 one is beyond it; 3 one reaches over it, or something could not be compared;\n"
    "2 usage; 4 a tool or Assay failed.";

struct Sizes {
  std::int64_t from = 0, to = 0;
  std::vector<std::int64_t> all;
};

// B/s by test and bytes.
using Figures = std::map<std::pair<std::string, std::int64_t>, double>;

// What it prints to stdout and stderr.
std::string output_of(const std::vector<std::string>& command, const Variables& variables) {
  ProcessRun run;
  run.process = {.words = command, .variables = variables, .death_signal = SIGTERM};
  run.limit_seconds = limit_seconds;
  run.ends_beyond = run.merged = true;
  FinishedProcess done = run_process(run);
  if (done.ended() && done.problem.empty()) return std::move(done.output);
  const std::string name = fs::path(command.front()).filename().string();
  if (done.stopped == Stopped::late)
    throw Error(fmt::format("crosscheck: {} has not ended after {}", name, format_seconds(limit_seconds)));
  if (done.stopped == Stopped::too_long)
    throw Error(
        fmt::format("crosscheck: {} printed more than {}", name, format_bytes(static_cast<double>(run.max_output))));
  const std::string tail = tail_of(done.output, 300);
  throw Error(
      fmt::format("crosscheck: {}: {}: {}", fmt::join(command, " "), done.problem, tail.substr(tail.rfind('\n') + 1)));
}

// A tool, the cases of ours that are like its own, and how each side's figures are read.
struct Tool {
  const char* name;
  const char* source;
  // Why nothing can be compared here; empty if something can.
  std::string (*obstacle)(const Sizes& sizes, int gpus);
  Json (*cases)(const Sizes& sizes, int gpus);
  // Of a record with status ok.
  std::pair<std::string, const char*> (*test_and_metric)(const Record& record);
  Figures (*measure)(const std::string& path, const Sizes& sizes, int gpus, const Variables& variables);
};

std::vector<std::int64_t> whole_mebibytes(const Sizes& sizes) {
  std::vector<std::int64_t> whole;
  for (const std::int64_t bytes : sizes.all)
    if (bytes % mebibyte == 0) whole.push_back(bytes);
  return whole;
}

// nvbandwidth's name of our direction.
constexpr std::array<std::pair<const char*, const char*>, 3> copies{{{"h2d", "host_to_device_memcpy_ce"},
                                                                     {"d2h", "device_to_host_memcpy_ce"},
                                                                     {"p2p", "device_to_device_memcpy_read_ce"}}};

// As many of `copies` as these GPUs allow.
std::size_t copies_on(int gpus) { return gpus > 1 ? copies.size() : copies.size() - 1; }

const Tool tools[] = {
    {"all_reduce_perf", "nccl-tests: https://github.com/NVIDIA/nccl-tests",
     [](const Sizes&, int gpus) {
       return gpus > 1 ? std::string() : "an all-reduce takes two GPUs, and one is visible";
     },
     [](const Sizes& sizes, int gpus) {
       return Json::array({{{"family", "collective"}, {"op", "all_reduce"}, {"bytes", sizes.all}, {"ranks", {gpus}}}});
     },
     [](const Record&) { return std::pair<std::string, const char*>("all_reduce", "algbw"); },
     [](const std::string& path, const Sizes& sizes, int gpus, const Variables& variables) {
       const std::string printed = output_of({path, "-b", std::to_string(sizes.from), "-e", std::to_string(sizes.to),
                                              "-f", std::to_string(factor), "-t", std::to_string(gpus), "-g", "1"},
                                             variables);
       Figures figures;
       for (const auto& [bytes, bandwidth] : read_all_reduce_perf(printed)) figures[{"all_reduce", bytes}] = bandwidth;
       return figures;
     }},
    {"nvbandwidth", "https://github.com/NVIDIA/nvbandwidth",
     [](const Sizes& sizes, int) { return whole_mebibytes(sizes).empty() ? "its sizes are whole MiB" : std::string(); },
     [](const Sizes& sizes, int gpus) {
       Json directions = Json::array();
       for (std::size_t i = 0; i < copies_on(gpus); ++i) directions.push_back(copies[i].first);
       return Json::array({{{"family", "transfer"},
                            {"direction", directions},
                            {"memory", "pinned"},
                            {"by", "engine"},
                            {"bytes", whole_mebibytes(sizes)}}});
     },
     [](const Record& record) {
       const std::string direction = param_text(record, "direction");
       const auto* const copy =
           std::find_if(copies.begin(), copies.end(), [&](const auto& one) { return direction == one.first; });
       return std::pair<std::string, const char*>(copy == copies.end() ? direction : copy->second, "bandwidth");
     },
     [](const std::string& path, const Sizes& sizes, int gpus, const Variables& variables) {
       Figures figures;
       for (const std::int64_t bytes : whole_mebibytes(sizes)) {
         std::vector<std::string> command{path, "-j", "-b", std::to_string(bytes / mebibyte), "-t"};
         for (std::size_t i = 0; i < copies_on(gpus); ++i) command.emplace_back(copies[i].second);
         for (const auto& [test, matrix] : read_nvbandwidth(output_of(command, variables))) {
           // Ours are those of GPU 0, or of the slowest pair.
           const bool pairs = test == copies.back().second;
           for (const auto& row : matrix)
             for (std::size_t column = 0; column < (pairs ? row.size() : std::min<std::size_t>(row.size(), 1));
                  ++column)
               if (row[column]) {
                 const auto [place, fresh] = figures.try_emplace({test, bytes}, *row[column]);
                 if (!fresh) place->second = std::min(place->second, *row[column]);
               }
         }
       }
       return figures;
     }},
};

// Remarks for readers of the figures, and those of them that leave a size without a ratio.
struct Remarks {
  std::set<std::string> all, missing;
  void miss(const std::string& text) { all.insert(text), missing.insert(text); }
};

// Adds what readers of our figures must know to `remarks`.
Figures measure_ours(const Tool& tool, const fs::path& plan, const fs::path& out, const Variables& variables,
                     Remarks& remarks) {
  output_of({program_command().string(), "run", plan.string(), "--device", "cuda", "--out", out.string()}, variables);
  Figures figures;
  for (const Record& record : read_run(out).final_records()) {
    for (const std::string& flag : record.flags) remarks.all.insert("ours: " + flag);
    if (record.status != Status::ok) {
      remarks.all.insert(fmt::format("ours: {}: {}: {}", record.key, name_of(record.status), record.reason));
      continue;
    }
    const auto [test, metric] = tool.test_and_metric(record);
    const Metric* const found = find_metric(record, metric);
    const auto bytes = param_number(record, "bytes");
    if (found && bytes && *found->value > 0) figures[{test, static_cast<std::int64_t>(*bytes)}] = *found->value;
  }
  fs::remove_all(out);
  return figures;
}

enum class State { within, beyond, unclear };
std::string_view name_of(State state) {
  switch (state) {
    case State::within: return "within";
    case State::beyond: return "beyond";
    case State::unclear: break;
  }
  return "unclear";
}

struct Row {
  std::string tool, test;
  std::int64_t bytes = 0;
  std::vector<double> ours, theirs, ratios;  // by pair
  double ratio = 0;                          // the median
  Interval interval;
  State state = State::unclear;
};

State judge(const Interval& interval, double tolerance) {
  const double low = 1 / (1 + tolerance), high = 1 + tolerance;
  if (interval.low > high || interval.high < low) return State::beyond;
  return interval.low >= low && interval.high <= high ? State::within : State::unclear;
}

std::string no_figure(const char* side, const Figures::key_type& place) {
  return fmt::format("{}: no figure of {} at {}", side, place.first, format_bytes(static_cast<double>(place.second)));
}

// The sides alternate: ours theirs, theirs ours, ...
std::vector<Row> compare(const Tool& tool, const std::string& path, const Sizes& sizes, int gpus,
                         const CrosscheckOptions& options, double tolerance, Remarks& remarks) {
  const TemporaryFolder folder(fs::temp_directory_path() / "assay-crosscheck");
  const fs::path plan = folder.path() / "crosscheck.json";
  replace_file(plan, Json{{"schema", 1},
                          {"name", "crosscheck"},
                          {"protocol", {{"max_seconds", "500ms"}, {"min_samples", 10}}},
                          {"cases", tool.cases(sizes, gpus)}}
                         .dump());
  Variables variables = inherited_variables();               // one host: the tools start no others
  variables.try_emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // as our workers have it
  std::map<Figures::key_type, Row> rows;
  for (int pair = 0; pair < options.pairs; ++pair) {
    Figures ours, theirs;
    const auto measure_own = [&] { ours = measure_ours(tool, plan, folder.path() / "run", variables, remarks); };
    if (pair % 2 == 0) measure_own();
    theirs = tool.measure(path, sizes, gpus, variables);
    if (pair % 2 == 1) measure_own();
    for (const auto& [place, bandwidth] : ours) {
      const auto other = theirs.find(place);
      if (other == theirs.end()) {
        remarks.miss(no_figure(tool.name, place));
        continue;
      }
      Row& row = rows[place];
      row.ours.push_back(bandwidth);
      row.theirs.push_back(other->second);
      row.ratios.push_back(bandwidth / other->second);
    }
    for (const auto& [place, bandwidth] : theirs)
      if (!ours.contains(place)) remarks.miss(no_figure("ours", place));
    say("assay: crosscheck: {}: pair {} of {}\n", tool.name, pair + 1, options.pairs);
  }
  std::vector<Row> kept;
  for (auto& [place, row] : rows) {
    const auto interval = median_interval(row.ratios);
    if (!interval) {
      remarks.miss(fmt::format("{} {} at {}: {} of {} pairs, too few", tool.name, place.first,
                               format_bytes(static_cast<double>(place.second)), row.ratios.size(), options.pairs));
      continue;
    }
    row.tool = tool.name;
    std::tie(row.test, row.bytes) = place;
    row.ratio = median(row.ratios);
    row.interval = *interval;
    row.state = judge(row.interval, tolerance);
    kept.push_back(std::move(row));
  }
  return kept;
}

struct Result {
  double tolerance = 0;
  Json tools = Json::array();
  std::vector<std::string> remarks;  // what was not compared, and why
  std::size_t missing = 0;           // of them, what should have been
  std::vector<Row> rows;

  std::size_t count(State state) const {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const Row& row) { return row.state == state; }));
  }
  ExitCode code() const {
    if (count(State::beyond) > 0) return ExitCode::failed;
    return rows.empty() || missing > 0 || count(State::unclear) > 0 ? ExitCode::no_data : ExitCode::ok;
  }
};

Json to_json(const Result& result) {
  Json rows = Json::array();
  for (const Row& row : result.rows)
    rows.push_back({{"tool", row.tool},
                    {"test", row.test},
                    {"bytes", row.bytes},
                    {"unit", "B/s"},
                    {"ours", median(row.ours)},
                    {"theirs", median(row.theirs)},
                    {"ratio", row.ratio},
                    {"low", row.interval.low},
                    {"high", row.interval.high},
                    {"ratios", row.ratios},
                    {"state", name_of(row.state)}});
  return {{"schema", 1},
          {"tolerance", result.tolerance},
          {"tools", result.tools},
          {"remarks", result.remarks},
          {"rows", std::move(rows)}};
}

report::Document document_of(const Result& result) {
  using namespace report;
  Table table{"ratios",
              "",
              {{"test", "test"},
               {"bytes", "size", Align::right},
               {"ours", "ours", Align::right},
               {"theirs", "theirs", Align::right},
               {"ratio", "ratio", Align::right},
               {"interval", "95 %", Align::right},
               {"state", "verdict"}},
              {}};
  for (const Row& row : result.rows)
    table.rows.push_back({text_cell(row.tool == row.test + "_perf" ? row.tool : row.tool + " " + row.test),
                          text_cell(format_bytes(static_cast<double>(row.bytes))),
                          text_cell(format_quantity(median(row.ours), "B/s")),
                          text_cell(format_quantity(median(row.theirs), "B/s")), text_cell(format_number(row.ratio, 3)),
                          text_cell(fmt::format("{:.3f} – {:.3f}", row.interval.low, row.interval.high)),
                          text_cell(std::string(name_of(row.state)), row.state == State::beyond    ? Tone::bad
                                                                     : row.state == State::unclear ? Tone::warn
                                                                                                   : Tone::good)});
  Section section{"crosscheck", "", {}};
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  if (!result.remarks.empty()) section.blocks.emplace_back(List{"remarks", result.remarks});
  Document document{"crosscheck", "", "", Tone::plain, {std::move(section)}};
  document.verdict = fmt::format("within {}: {} · beyond: {} · unclear: {}{}", format_percent(result.tolerance),
                                 result.count(State::within), result.count(State::beyond), result.count(State::unclear),
                                 result.missing > 0 ? fmt::format(" · not compared: {}", result.missing) : "");
  if (result.code() == ExitCode::failed) document.tone = Tone::bad;
  if (result.code() == ExitCode::no_data) document.tone = Tone::warn;
  return document;
}

Sizes sizes_of(const CrosscheckOptions& options) {
  Sizes sizes{parse_flag("crosscheck: --min-bytes", options.from, parse_bytes),
              parse_flag("crosscheck: --max-bytes", options.to, parse_bytes),
              {}};
  if (sizes.from < 4 || sizes.from % 4 != 0)
    throw UsageError(
        fmt::format("crosscheck: --min-bytes {}: must be a multiple of 4 bytes, the size of an f32", options.from));
  if (sizes.to < sizes.from || sizes.to > std::int64_t{1} << 40)
    throw UsageError(fmt::format("crosscheck: --max-bytes {}: must be from {} to 1 TiB", options.to, options.from));
  for (std::int64_t bytes = sizes.from; bytes <= sizes.to; bytes *= factor) sizes.all.push_back(bytes);
  return sizes;
}

double tolerance_of(const std::string& text) {
  const double tolerance = parse_flag("crosscheck: --tolerance", text, parse_fraction);
  if (!(tolerance > 0)) throw UsageError(fmt::format("crosscheck: --tolerance {}: must be above 0", text));
  return tolerance;
}

ExitCode crosscheck(const CrosscheckOptions& options) {
  const Sizes sizes = sizes_of(options);
  Result result;
  result.tolerance = tolerance_of(options.tolerance);
  std::vector<std::pair<const Tool*, std::string>> found;
  for (const Tool& tool : tools) {
    std::string path = find_program(tool.name);
    result.tools.push_back({{"name", tool.name}, {"path", path.empty() ? Json() : Json(path)}});
    if (path.empty())
      result.remarks.push_back(fmt::format("{} is not on the PATH; to get it: {}", tool.name, tool.source));
    else
      found.emplace_back(&tool, std::move(path));
  }
  if (!found.empty()) {
    const CudaProbe gpus = Module::find("cuda").empty() ? CudaProbe{0, "this build has no CUDA module"} : probe_cuda();
    Remarks remarks;
    for (const auto& [tool, path] : found) {
      const std::string obstacle = !gpus.problem.empty() ? gpus.problem : tool->obstacle(sizes, gpus.gpus);
      if (!obstacle.empty()) {
        result.remarks.push_back(fmt::format("{} was not run: {}", tool->name, obstacle));
        continue;
      }
      std::vector<Row> rows = compare(*tool, path, sizes, gpus.gpus, options, result.tolerance, remarks);
      std::move(rows.begin(), rows.end(), std::back_inserter(result.rows));
    }
    result.remarks.insert(result.remarks.end(), remarks.all.begin(), remarks.all.end());
    result.missing = remarks.missing.size();
  }
  if (result.rows.empty()) say("assay: crosscheck: nothing could be compared: {}\n", fmt::join(result.remarks, "; "));
  options.outputs.write_json([&] { return dump_document(to_json(result), 2); });
  if (!result.rows.empty()) options.outputs.print(document_of(result));
  return result.code();
}

}  // namespace

Command crosscheck_command(CLI::App& root) {
  auto options = std::make_shared<CrosscheckOptions>();
  CLI::App* app = root.add_subcommand("crosscheck", "Measure GPUs beside nccl-tests and nvbandwidth");
  options->outputs.add_to(*app);
  app->add_option("--pairs", options->pairs, "How often each side is measured")
      ->check(CLI::Range(min_pairs, 1000))
      ->capture_default_str();
  app->add_option("--tolerance", options->tolerance, "How far a ratio may be from 1 (2%, 0.02)")->capture_default_str();
  app->add_option("--min-bytes", options->from, "The smallest size; each further one is 16 times as large")
      ->type_name("BYTES")
      ->capture_default_str();
  app->add_option("--max-bytes", options->to, "The largest size")->type_name("BYTES")->capture_default_str();
  app->footer(crosscheck_footer);
  return {app, [options] { return crosscheck(*options); }};
}

}  // namespace assay::cli
