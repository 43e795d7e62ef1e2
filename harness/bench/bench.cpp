#include "harness/bench/bench.h"

#include "harness/bench/session.h"
#include "harness/core/files.h"
#include "harness/core/nearest.h"
#include "harness/core/secrets.h"
#include "harness/core/version.h"
#include "harness/device/settings.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <exception>
#include <new>
#include <regex>

namespace assay {

namespace {

// Google Benchmark 1.8 distinguishes skips from errors; in earlier versions a skip is an error with that message.
template <typename State>
void skip(State& state, const std::string& reason) {
  const std::string message = "skipped: " + reason;
  if constexpr (requires { state.SkipWithMessage(message); }) {
    state.SkipWithMessage(message);
  } else {
    state.SkipWithError(message.c_str());
  }
}

void run_case(benchmark::State& state, bench::Session& session, std::size_t index, ExitCode& code) {
  const auto fail = [&](ExitCode why, const std::string& message) {
    code = worst(code, why);
    session.close();
    state.SkipWithError(message.c_str());
  };
  try {
    if (const auto reason = session.open(index)) return skip(state, *reason);
    std::vector<double> times;
    std::size_t done = 0;
    for ([[maybe_unused]] auto _ : state) {
      // Inside the loop, so that Google Benchmark's CPU time is that of the work.
      if (times.empty()) times = session.measure(static_cast<std::int64_t>(state.max_iterations));
      state.SetIterationTime(times[done++]);
    }
    if (const auto fault = session.fault()) return fail(ExitCode::failed, "failed: " + *fault);
    for (const Metric& metric : session.metrics())
      if (metric.value) state.counters[metric.name] = *metric.value;
    state.SetLabel(session.label());
  } catch (const std::bad_alloc&) {
    fail(ExitCode::broken, "error: out of memory");
  } catch (const std::exception& error) {
    fail(ExitCode::broken, std::string("error: ") + error.what());
  }
}

// The last value of --NAME=VALUE among the flags; empty if absent.
std::string flag_value(const std::vector<std::string>& flags, const std::string& name) {
  std::string value;
  for (const std::string& flag : flags)
    if (flag.starts_with("--" + name + "=")) value = flag.substr(name.size() + 3);
  return value;
}

// Rejects what Google Benchmark would answer with its usage text and exit code 0, or only after measuring.
void check_flags(const std::vector<std::string>& flags) {
  const std::vector<std::string> formats = {"console", "json", "csv"};
  for (const char* name : {"benchmark_format", "benchmark_out_format"}) {
    const std::string format = flag_value(flags, name);
    if (!format.empty() && std::ranges::find(formats, format) == formats.end())
      throw UsageError(fmt::format("bench: --{}={}: console, json or csv", name, format));
  }
  std::string filter = flag_value(flags, "benchmark_filter");
  if (filter.starts_with("-")) filter.erase(0, 1);  // the cases that do not match
  try {
    const std::regex checked(filter);
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("bench: --benchmark_filter={} is not a regular expression: {}", filter, error.what()));
  }
}

// The file of --benchmark_out: Google Benchmark, which opens a file by its name alone, writes another one, whose text
// this one gets at the end.
class OutFile {
 public:
  // Changes the flags if there is such a file.
  explicit OutFile(std::vector<std::string>& flags) {
    const std::string name = flag_value(flags, "benchmark_out");
    if (name.empty()) return;
    try {
      file_.emplace(name);
    } catch (const Error& error) {
      throw UsageError(fmt::format("bench: {}", error.what()));
    }
    folder_.emplace(std::filesystem::temp_directory_path() / "assay-bench");
    flags.push_back("--benchmark_out=" + (folder_->path() / "out").string());
  }
  void finish() {
    constexpr std::uintmax_t max_bytes = std::uintmax_t{4} << 30;
    if (!file_) return;
    file_->write(mask_secrets(read_whole(folder_->path() / "out", max_bytes)));
    file_->finish();
  }

 private:
  std::optional<NewFile> file_;
  std::optional<TemporaryFolder> folder_;
};

std::vector<std::string> known_flags() {
  return {"--benchmark_list_tests",
          "--benchmark_filter",
          "--benchmark_min_time",
          "--benchmark_repetitions",
          "--benchmark_enable_random_interleaving",
          "--benchmark_report_aggregates_only",
          "--benchmark_display_aggregates_only",
          "--benchmark_format",
          "--benchmark_out",
          "--benchmark_out_format",
          "--benchmark_color",
          "--benchmark_counters_tabular",
          "--benchmark_context",
          "--v",
          "--help"};
}

}  // namespace

ExitCode run_benchmarks(const BenchRequest& request) {
  check_flags(request.flags);
  std::string program = "assay bench";
  std::vector<std::string> flags = request.flags;
  OutFile out(flags);
  std::vector<char*> argv = {program.data()};
  for (std::string& flag : flags) argv.push_back(flag.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(argv.size()) - 1;
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) {
    const std::string word = argv[1];
    throw UsageError(fmt::format("bench: Google Benchmark does not know {}{}", word,
                                 suggestion(word.substr(0, word.find('=')), known_flags())));
  }

  bench::Session session(request);
  ExitCode code = ExitCode::ok;
  for (std::size_t i = 0; i < request.cases.size(); ++i)
    benchmark::RegisterBenchmark(request.cases[i].key.c_str(), [&session, i, &code](benchmark::State& state) {
      run_case(state, session, i, code);
    })->UseManualTime();
  benchmark::AddCustomContext("assay_version", std::string(build_info().version));
  for (const Setting& setting : settings_here(DeviceKind::cpu, 1))
    benchmark::AddCustomContext(setting.name, setting.value);
  const std::size_t selected = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (selected == 0)
    throw UsageError("bench: --benchmark_filter selects no case; --benchmark_list_tests names them all");
  out.finish();
  return code;
}

}  // namespace assay
