#include "harness/kineto/record.h"

#include "harness/core/utc.h"
#include "harness/core/version.h"
#include "harness/json/json.h"
#include "harness/record/content_hash.h"
#include "harness/record/run_dir.h"
#include "harness/watch/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

namespace assay::kineto {
namespace {

constexpr std::size_t max_kept = 1000, max_name_bytes = 1000;  // in run.json

std::string utc_of(double seconds) { return utc_text(static_cast<std::time_t>(std::clamp(seconds, 0.0, 4e9))); }

}  // namespace

void add_gpu_spans(const std::string& of, const GpuParts& parts, std::vector<std::pair<std::string, double>>& spans) {
  for (const auto& [name, seconds] : {std::pair("compute", parts.compute),
                                      {"exposed_communication", parts.communication},
                                      {"exposed_copies", parts.copies},
                                      {"data_wait", parts.data},
                                      {"gpu_idle:step", parts.host}})
    spans.emplace_back(of + name, seconds);
}

Json trace_of(const Job& job) {
  Traced all;
  all.kernels = job.gpu;
  for (const TracedUse& use : job.uses) {
    if (all.uses.size() == max_kept) break;
    all.uses.push_back({use.name.substr(0, max_name_bytes), use.calls, use.seconds, use.work});
  }
  all.left_out = job.uses.size() - all.uses.size();
  all.collectives = job.collectives;
  return trace_json(all);
}

Record record_of(const Job& job, const std::string& name) {
  Record record;
  std::string plain = name;
  std::ranges::replace(plain, '/', '_');
  record.key = "command/name=" + plain;
  record.family = "command";
  record.params = Json{{"name", plain}};
  record.protocol = Json{{"form", "imported"}, {"source", "kineto"}, {"hash", "kineto"}};
  record.started = utc_of(job.started());
  record.seconds = job.seconds();
  record.device = job.gpu ? "cuda" : "cpu";
  record.world_ranks = job.world;
  std::set<std::string> hosts;
  watch::Seen seen;
  for (const RankTrace& rank : job.ranks) {
    record.ranks.push_back(
        {*rank.rank, rank.host, job.gpu ? (rank.device.empty() ? "GPU" : rank.device) : "CPU", std::nullopt});
    hosts.insert(rank.host);
    watch::RankInfo info;
    info.rank = *rank.rank, info.world = job.world, info.cuda = job.gpu;
    seen.ranks.push_back(info);
  }
  record.world_nodes = static_cast<int>(hosts.size());
  seen.steps = job.steps;
  seen.started = job.ranks.front().steps.front().start;
  watch::add_steps({}, seen, record);
  if (job.gpu) {
    double launches = 0;
    for (const TracedUse& use : job.uses) launches += use.calls;
    record.metrics.push_back({"launches", launches, "launches", {}, Better::lower, {}, {}});
    add_gpu_spans("", job.mean_gpu_parts(), record.spans);
    if (job.gpu_parts.size() > 1)
      for (const GpuParts& rank : job.gpu_parts) add_gpu_spans(fmt::format("rank {} ", rank.rank), rank, record.spans);
  }
  record.labels["source"] = "kineto";
  for (std::size_t i = 0; i < job.found.size(); ++i)
    record.labels[fmt::format("diagnosis_{}", i + 1)] =
        fmt::format("{}: {} -> {}", job.found[i].rule, job.found[i].says, job.found[i].change);
  return record;
}

void write_job(const Job& job, const Record& record, const std::filesystem::path& out) {
  write_run(out, [&](const std::function<void(Record)>& add) {
    add(record);
    Json files = Json::array(), hosts = Json::array(), gpus = Json::array();
    std::uint64_t hash = hash64("kineto");
    for (const RankTrace& rank : job.ranks) {
      const std::string file = std::filesystem::path(rank.file).filename().string();
      files.push_back(file);
      hash = hash64(fmt::format("{} {} {}", *rank.rank, rank.base_ns, rank.steps.front().start), hash);
      if (!rank.host.empty() && std::find(hosts.begin(), hosts.end(), Json(rank.host)) == hosts.end())
        hosts.push_back(rank.host);
      if (!rank.device.empty()) gpus.push_back({{"name", rank.device}});
    }
    Json run = {{"schema", record_schema},
                {"id", fmt::format("{:016x}", hash)},
                {"started", record.started},
                {"finished", utc_of(job.started() + job.seconds())},
                {"version", build_info().version},
                {"source", {{"format", "kineto"}, {"files", files}}},
                {"labels", Json::object()},
                {"plan", {{"name", "imported from kineto"}}},
                {"environment", {{"hostnames", hosts}}}};
    if (!gpus.empty()) run["environment"]["gpus"] = gpus;
    run["trace"] = trace_of(job);
    return run;
  });
  sync_file_system(out);
}

}  // namespace assay::kineto
