#include "harness/watch/record.h"

#include "harness/core/build_id.h"
#include "harness/core/host.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/core/version.h"
#include "harness/json/json.h"
#include "harness/machine/environment.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace assay::watch {
namespace {

std::string hook_text(const std::vector<RankInfo>& ranks) {
  std::vector<std::string> texts;
  for (const RankInfo& rank : ranks)
    for (const auto& [name, why] : rank.absent) {
      const std::string text = fmt::format("{}: {}", name, why);
      if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
    }
  return joined(texts, "; ");
}

// By the names that reports know (harness/runs/step_shares.h), and two more.
void add_spans(const std::string& of, const Parts& parts, Record& record) {
  const auto add = [&](const char* name, double seconds) { record.spans.emplace_back(of + name, seconds); };
  const auto part = [&](Part one) { return parts[static_cast<std::size_t>(one)]; };
  add("forward", part(Part::forward)), add("backward", part(Part::backward));
  add("optimizer", part(Part::optimizer)), add("data_wait", part(Part::data_wait));
  add("exposed_communication", part(Part::communication) + part(Part::waiting));
  add("waiting_for_ranks", part(Part::waiting)), add("checkpoint", part(Part::checkpoint));
}

}  // namespace

void add_steps(const WatchRequest& request, const Seen& seen, Record& record) {
  const JobSteps& steps = *seen.steps;
  record.samples.values = steps.seconds;
  for (std::size_t i = 0; i < steps.ends.size(); ++i)
    record.samples.at.push_back(std::max(0.0, steps.ends[i] - steps.seconds[i] - seen.started));
  record.samples.count = static_cast<std::int64_t>(steps.seconds.size());
  record.samples.stopped_by = "done";
  const auto& median = steps.summary;
  const auto rate = [&](const char* name, double amount, const std::string& unit) {
    Metric metric{name, amount / median.median, unit, {}, Better::higher, {}, {}, amount};
    if (median.ci95) metric.ci95 = Interval{amount / median.ci95->high, amount / median.ci95->low};
    record.metrics.push_back(metric);
  };
  if (request.items) rate("throughput", *request.items, request.unit + "/s");
  record.metrics.push_back({"step_time", median.median, "s", median.ci95, Better::lower, {}, {}, 1.0});
  if (request.flops) rate("model_flops", *request.flops, "FLOP/s");
  if (request.flops && seen.peak) rate("mfu", *request.flops / seen.peak->flops, "1");
  if (request.flops) record.labels["peak"] = seen.peak ? seen.peak->source : "no sheet gives this machine's peak";
  if (steps.straggler && steps.step > 0) {
    record.metrics.push_back({"arrival_skew", steps.straggler->skew, "s", {}, Better::lower, {}, {}});
    record.metrics.push_back(
        {"transfer", steps.parts[static_cast<std::size_t>(Part::communication)], "s", {}, Better::lower, {}, {}});
    for (RankResult& result : record.ranks)
      for (const RankParts& rank : steps.ranks)
        if (rank.rank == result.rank) result.pace = rank.own();
  }
  record.metrics.push_back({"step_time_p95", steps.p95, "s", {}, Better::lower, {}, {}});
  // What the host of a GPU does is no part of the step.
  const bool cuda = std::ranges::any_of(seen.ranks, [](const RankInfo& rank) { return rank.cuda && !rank.gpu_parts; });
  if (steps.step > 0 && !cuda) add_spans("", steps.parts, record);
  for (const RankParts& rank : steps.ranks)
    if (steps.ranks.size() > 1 && !cuda) add_spans(fmt::format("rank {} ", rank.rank), rank.parts, record);
  record.labels["steps"] = std::to_string(steps.count);
  if (steps.recorded > 0) record.labels["steps_left_out"] = std::to_string(steps.recorded);
  if (seen.window && !seen.window->steps.empty()) {
    record.labels["traced_steps"] = seen.window->steps;
    record.spans.insert(record.spans.end(), seen.window->spans.begin(), seen.window->spans.end());
  }
  if (steps.overhead && steps.overhead->ci95) {
    record.metrics.push_back(
        {"watching_cost", steps.overhead->share, "1", steps.overhead->ci95, Better::lower, {}, {}});
    if (steps.overhead->ci95->low > 0.01) record.flags.emplace_back("watching cost more than 1 % of a step");
  }
}

std::string name_of_job(const std::vector<std::string>& words) {
  // The first script, else the program.
  for (const std::string& word : words)
    if (word.ends_with(".py") || word.ends_with(".sh")) return word.substr(word.rfind('/') + 1);
  return words.front().substr(words.front().rfind('/') + 1);
}

Record record_of(const WatchRequest& request, const Seen& seen) {
  Record record;
  std::string name = request.name.empty() ? name_of_job(request.words) : request.name;
  std::ranges::replace(name, '/', '_');
  record.key = "command/name=" + name;  // as the family of that name, which repeats a command
  record.family = "command";
  record.params = Json{{"name", name}};
  record.protocol = Json{{"form", "watched"}, {"steps", "optimizer"}, {"hash", "watched"}};
  record.started = seen.started_utc;
  record.seconds = seen.seconds;
  record.labels = request.labels;
  record.labels["command"] = one_line(joined(request.words, " "), 1000);
  if (!seen.problem.empty()) record.status = Status::failed, record.reason = seen.problem;
  for (const RankInfo& rank : seen.ranks) {
    record.ranks.push_back(
        {rank.rank, rank.host.empty() ? this_host() : rank.host, rank.cuda ? "GPU" : "CPU", std::nullopt});
    record.world_ranks = std::max(record.world_ranks, rank.world);
    if (rank.cuda) record.device = "cuda";
    record.labels["torch"] = rank.torch;
    if (!rank.dtype.empty()) record.labels["dtype"] = rank.dtype;
    if (rank.cuda) record.labels["parts_of"] = rank.gpu_parts ? "GPU" : "host";
    record.labels["threads"] = std::to_string(rank.threads);
  }
  if (record.ranks.empty()) record.ranks.push_back({0, this_host(), "CPU", std::nullopt});
  if (const std::string absent = hook_text(seen.ranks); !absent.empty()) record.labels["hooks_absent"] = absent;
  if (seen.steps) add_steps(request, seen, record);
  const auto add = [&](const char* metric, std::optional<double> value, const char* unit) {
    if (value) record.metrics.push_back({metric, value, unit, {}, Better::lower, {}, {}});
  };
  add("wall_time", seen.seconds, "s");
  add("user_time", seen.use.user, "s");
  add("system_time", seen.use.system, "s");
  add("cpus_used", seen.use.cpu_seconds() / std::max(seen.seconds, 1e-9), "1");
  add("peak_memory", seen.use.peak_memory, "B");
  add("mean_memory", seen.use.mean_memory, "B");
  add("bytes_read", seen.use.read, "B");
  add("bytes_written", seen.use.written, "B");
  add("threads", static_cast<double>(seen.use.threads), "1");
  record.telemetry = seen.series;
  record.outside_cpu = seen.outside;
  record.labels["watcher_cpus"] = fmt::format("{:.4f}", seen.watcher_cpus);
  for (std::size_t i = 0; i < seen.found.size(); ++i)
    record.labels[fmt::format("diagnosis_{}", i + 1)] =
        fmt::format("{}: {} -> {}", seen.found[i].rule, seen.found[i].says, seen.found[i].change);
  return record;
}

void write_record(const WatchRequest& request, const Seen& seen, const Record& record) {
  write_run(request.out, [&](const std::function<void(Record)>& add) {
    add(record);
    Json run = {{"schema", record_schema},
                {"id", random_token()},
                {"started", record.started},
                {"finished", utc_text(std::time(nullptr))},
                {"argv", request.command_line}};
    run["version"] = build_info().version, run["build_id"] = build_id();
    run["git"] = {{"commit", build_info().commit}, {"dirty", build_info().dirty}};
    run["device"] = record.device;
    run["labels"] = Json::object();
    for (const auto& [name, value] : request.labels) run["labels"][name] = value;
    if (seen.window && !seen.window->trace.is_null()) run["trace"] = seen.window->trace;
    run["environment"] = environment_json(probe_machine(user_root()));
    return run;
  });
}

}  // namespace assay::watch
