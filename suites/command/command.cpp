// The command family: any program, run as often as asked, in its own processes.
#include "suites/command/command.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/device/cpu/team.h"
#include "harness/figures/mentions.h"
#include "harness/figures/printed.h"
#include "harness/figures/quantity.h"
#include "harness/process/run.h"
#include "harness/sensors/job_sensor.h"

#include <fmt/format.h>

#include <cctype>
#include <sstream>

namespace assay {

namespace command {

namespace {

constexpr int max_lines = 19;        // of a failed run's output that are kept: with what happened, 20
constexpr double grace_seconds = 5;  // between SIGTERM and SIGKILL of a run that takes too long
constexpr double usual_share = 0.1;  // of its limit that a run is taken to need, for the estimate
constexpr std::size_t max_output = std::size_t{16} << 20;

constexpr const char* own_metrics[] = {"wall_time",   "user_time",  "system_time",   "cpus_used", "peak_memory",
                                       "mean_memory", "bytes_read", "bytes_written", "threads"};

enum class Direction { automatic, higher, lower };
constexpr auto words(Direction) { return std::to_array<std::string_view>({"auto", "higher", "lower"}); }

std::optional<Better> better_of(const Params& params) {
  const auto direction = params.has("better") ? params.choice<Direction>("better") : Direction::automatic;
  if (direction == Direction::automatic) return std::nullopt;
  return direction == Direction::higher ? Better::higher : Better::lower;
}

std::string text_or_none(const Params& params, const char* name) {
  return params.has(name) ? params.text(name) : std::string();
}

std::int64_t number_or(const Params& params, const char* name, std::int64_t other) {
  return params.has(name) ? params.integer(name) : other;
}

// What one run of the command used and printed.
struct Run {
  double seconds = 0;
  JobUse use;
  std::optional<double> figure;
};

class CommandCase final : public Case {
 public:
  explicit CommandCase(const Params& params)
      : script_(script_of(params)),
        metric_(text_or_none(params, "metric")),
        unit_(text_or_none(params, "unit")),
        better_(better_of(params)),
        runs_(number_or(params, "runs", 5)),
        warmups_(number_or(params, "warmup", 1)),
        limit_(params.real("timeout")) {}

  void setup(Context& context) override {
    context_ = &context;
    Protocol& protocol = context.outputs.protocol;
    protocol.form = Protocol::Form::procedure;
    protocol.batching = Protocol::Batching::isolated;
    protocol.cache = Protocol::Cache::none;
    protocol.data = "of the command";
    protocol.timer = "steady_clock";
    // The runs are counted, so these limits have no part in it.
    protocol.warmup_seconds = 0;
    protocol.min_samples = static_cast<int>(runs_);
    protocol.max_samples = static_cast<int>(runs_);
    protocol.details["warmup_runs"] = std::to_string(warmups_);
    context.outputs.labels["command"] = one_line(script_, 1000);
  }

  void measure(Sampler& sampler) override {
    sampler.procedure([this] {
      std::vector<double> seconds;
      for (std::int64_t i = 0; i < warmups_ + runs_ && problem_.empty(); ++i) {
        const Run one =
            run_once(i < warmups_ ? fmt::format("warm-up {}", i + 1) : fmt::format("run {}", i - warmups_ + 1));
        if (!problem_.empty() && seconds.empty()) seconds.push_back(one.seconds);
        if (!problem_.empty() || i < warmups_) continue;
        seconds.push_back(one.seconds);
        done_.push_back(one);
      }
      return seconds;
    });
  }

  void verify(Checks& checks) override {
    if (const std::string cut = series_.cut(); !cut.empty()) context_->outputs.flags.push_back(cut);
    context_->outputs.series = series_.take();
    std::vector<std::string> detail;
    if (!problem_.empty()) {
      detail = std::move(last_lines_);
      detail.insert(detail.begin(), problem_);
    }
    checks.that(broken_ == Broken::figure ? "figure" : "exit_code", problem_.empty(), detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    if (!problem_.empty()) return {};
    std::vector<Metric> all;
    if (!metric_.empty()) all.push_back(figure());
    all.push_back({own_metrics[0], measured.summary.median, "s", measured.summary.ci95, Better::lower, {}, {}});
    const auto add = [&](const char* name, const char* unit, auto&& of) {
      std::vector<double> values;
      for (const Run& run : done_)
        if (const std::optional<double> value = of(run)) values.push_back(*value);
      if (values.size() != done_.size()) return;
      const Summary summary = summarize(values);
      all.push_back({name, summary.median, unit, summary.ci95, Better::lower, {}, {}});
    };
    add(own_metrics[1], "s", [](const Run& run) { return std::optional(run.use.user); });
    add(own_metrics[2], "s", [](const Run& run) { return std::optional(run.use.system); });
    add(own_metrics[3], "1", [](const Run& run) { return std::optional(run.use.cpu_seconds() / run.seconds); });
    add(own_metrics[4], "B", [](const Run& run) { return run.use.peak_memory; });
    add(own_metrics[5], "B", [](const Run& run) { return run.use.mean_memory; });
    add(own_metrics[6], "B", [](const Run& run) { return run.use.read; });
    add(own_metrics[7], "B", [](const Run& run) { return run.use.written; });
    add(own_metrics[8], "1", [](const Run& run) { return std::optional(static_cast<double>(run.use.threads)); });
    return all;
  }

 private:
  enum class Broken { nothing, run, figure };

  Metric figure() const {
    std::vector<double> values;
    for (const Run& run : done_) values.push_back(*run.figure);
    const Summary summary = summarize(values);
    return {metric_, summary.median, shown_unit_, summary.ci95, figure_better_, {}, {}};
  }

  void fail(Broken how, const std::string& why, const std::string& output) {
    broken_ = how, problem_ = why;
    last_lines_ = shown_lines(output, max_lines);
  }

  Run run_once(const std::string& name) {
    // A new process inherits the CPUs of this thread, which may be confined to one.
    cpu::bind_this_thread(cpu::rank_cpus());
    std::optional<JobWatch> watch;
    JobWatch::Watched watched;
    ProcessRun shell;
    shell.process = {.words = {"/bin/sh", "-c", script_}, .variables = inherited_variables()};
    shell.limit_seconds = limit_;
    shell.grace_seconds = grace_seconds;
    shell.max_output = max_output;
    shell.merged = true;
    shell.on_start = [&](pid_t pid) { watch.emplace(Root(), pid, begun_); };
    shell.on_end = [&](pid_t) { watched = watch->stop(); };
    const FinishedProcess done = run_process(shell);
    Run run{done.seconds, std::move(watched.use), {}};
    series_.add(watched.series);
    if (done.stopped == Stopped::late)
      fail(Broken::run, fmt::format("{}: no end within {}", name, format_seconds(limit_)), done.output);
    else if (!done.ended() || !done.problem.empty())
      fail(Broken::run, fmt::format("{}: {}", name, done.ended() ? done.problem : "interrupted"), done.output);
    else if (!metric_.empty())
      read_figure(run, name, done);
    return run;
  }

  void read_figure(Run& run, const std::string& name, const FinishedProcess& done) {
    try {
      const PrintedFigure found = named_figure({done.output, done.whole, done.seconds}, metric_, better_, name);
      std::string unit = *found.unit;
      if (!unit_.empty() && unit == "1") unit = unit_;
      if (!shown_unit_.empty() && unit != shown_unit_)
        throw UsageError(
            fmt::format("{}: {} is in {}, before it was in {}", name, in_quotes(metric_), unit, shown_unit_));
      if (!unit_.empty() && unit != base_unit(unit_).value_or(BaseUnit{1, unit_}).name)
        throw UsageError(fmt::format("{}: {} is in {}, not in {}", name, in_quotes(metric_), unit, unit_));
      shown_unit_ = unit;
      figure_better_ = *found.better;
      run.figure = found.value;
      if (!found.remark.empty()) context_->outputs.labels["figure"] = found.remark;
    } catch (const UsageError& error) {
      fail(Broken::figure, error.what(), done.output);
    }
  }

  std::string script_, metric_, unit_;
  std::optional<Better> better_;
  std::int64_t runs_, warmups_;
  double limit_;
  Context* context_ = nullptr;
  Clock::time_point begun_ = Clock::now();
  std::vector<Run> done_;
  SeriesOfRuns series_;
  Broken broken_ = Broken::nothing;
  std::string problem_;  // of the run that failed
  std::vector<std::string> last_lines_;
  std::string shown_unit_;
  Better figure_better_ = Better::higher;
};

double all_runs(const Params& params) {
  return static_cast<double>(number_or(params, "runs", 5) + number_or(params, "warmup", 1));
}

std::optional<std::string> conflict(const Params& params, const World&) {
  if (trim(params.text("argv")).empty()) return "argv is empty: name the command, as by command.argv='python train.py'";
  if (const std::string problem = problem_of_variables(text_or_none(params, "env")); !problem.empty())
    return "env: " + problem;
  if (text_or_none(params, "metric").empty()) {
    for (const char* of_metric : {"unit", "better"})
      if (params.has(of_metric)) return fmt::format("{} belongs to a metric, and none is named", of_metric);
  }
  for (const char* own : own_metrics)
    if (text_or_none(params, "metric") == own) return fmt::format("{} is in each record of a command anyway", own);
  return std::nullopt;
}

}  // namespace

std::string script_of(const Params& params) {
  const std::string variables = text_or_none(params, "env");
  return (variables.empty() ? "" : "export " + variables + "; ") + params.text("argv");
}

std::string problem_of_variables(const std::string& text) {
  bool single = false, twice = false, in_word = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (!in_word && !single && !twice && c != ' ') {
      std::size_t end = at;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
      if (end == at || end == text.size() || text[end] != '=' || std::isdigit(static_cast<unsigned char>(c)))
        return fmt::format("{} is not NAME=VALUE", in_quotes(text.substr(at, text.find(' ', at) - at), 40));
      in_word = true;
      at = end;
      continue;
    }
    if (single) {
      single = c != '\'';
    } else if (c == '\\') {
      ++at;
    } else if (twice) {
      if (c == '$' || c == '`') return "a value must not contain $ or ` outside of single quotes";
      twice = c != '"';
    } else if (c == '\'' || c == '"') {
      (c == '"' ? twice : single) = true;
    } else if (c == ' ') {
      in_word = false;
    } else if (std::string_view(";&|<>()$`*?[").find(c) != std::string_view::npos) {
      return fmt::format("a value with {} must be in single quotes", in_quotes(std::string(1, c)));
    }
  }
  return single || twice ? "a quotation mark is not closed" : "";
}

void SeriesOfRuns::add(const std::map<std::string, Series>& run) {
  ++runs_;
  for (const auto& [name, values] : all_) full_ = full_ || values.at.size() >= max_points;
  if (full_) {
    ++left_out_;
    return;
  }
  for (const auto& [name, values] : run) {
    Series& series = all_[name];
    series.unit = values.unit;
    series.at.insert(series.at.end(), values.at.begin(), values.at.end());
    series.values.insert(series.values.end(), values.values.begin(), values.values.end());
  }
}

std::string SeriesOfRuns::cut() const {
  if (left_out_ == 0) return {};
  return fmt::format("job series cover the first {} of {} runs: no more than {} points are kept", runs_ - left_out_,
                     runs_, max_points);
}

std::vector<std::string> shown_lines(const std::string& output, int count) {
  std::vector<std::string> shown;
  std::istringstream lines(last_lines(visible_text(output), count));
  for (std::string line; std::getline(lines, line);) shown.push_back(one_line(line, 400));
  return shown;
}

}  // namespace command

Family command_family() {
  Family family;
  family.name = "command";
  family.summary = "any command: its time, or a figure that it prints, and what its processes use";
  family.params = {
      axis::text("name", "").omitted_by_default().doc("what to call it"),
      axis::text("argv", "")
          .read_by_shell(ParamSpec::Shell::command)
          .doc("the command, as a shell reads it; in plans also a list of its words"),
      axis::text("env", "")
          .omitted_by_default()
          .read_by_shell(ParamSpec::Shell::variables)
          .doc("variables that it gets besides those of Assay: NAME=VALUE ...; in plans an object"),
      axis::text("metric", "")
          .omitted_by_default()
          .doc("the figure that it prints, by its name as for `ab --metric`; empty: its time"),
      axis::text("unit", "").omitted_by_default().doc("unit of that figure, if it prints none"),
      axis::choice<command::Direction>("better").runs({"auto"}).omitted_by_default().doc(
          "which way that figure counts; auto: as it says, or by its unit"),
      axis::integer("runs", 5).range(1, 10000).doc("how often it is run"),
      axis::integer("warmup", 1).range(0, 10000).doc("how often it is run before, without being measured"),
      axis::seconds("timeout", 600).range(0.001, 1e6).doc("limit of one run"),
  };
  family.estimate = [](const Params& params, const World&) {
    return Estimate{.memory_bytes = 4.0 * command::max_output,
                    .seconds = command::usual_share * command::all_runs(params) *
                               (params.real("timeout") + command::grace_seconds + 1)};
  };
  family.make = make_case_of<command::CommandCase>;
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  family.conflict = command::conflict;
  family.takes_one_rank = [](const Params&) { return true; };
  return family;
}

}  // namespace assay
