// Files of settings that a user may name or change, and what acceptances and gates keep: sheets of hardware, levels of
// an acceptance, policies of gates, rules of a diagnosis, published figures, reference points, states, past gates.
// Every input goes to all readers.
#include "harness/core/configs.h"
#include "harness/fitness/accept/level.h"
#include "harness/fitness/accept/state.h"
#include "harness/fitness/accept/suspicions.h"
#include "harness/fitness/gate/catalogue.h"
#include "harness/fitness/gate/past.h"
#include "harness/fitness/gate/policy.h"
#include "harness/json/members.h"
#include "harness/machine/hardware.h"
#include "reports/diagnosis/diagnosis.h"
#include "reports/references/published.h"
#include "reports/sizing/published.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/runs.h"
#include "workloads/training/recipe.h"
#include "workloads/training/scoring.h"

#include <cmath>
#include <fstream>

namespace assay::fuzz {

namespace {

// Training on two GPUs, of which one is slow and waits for data, and a product of matrices.
RunSet some_runs() {
  Record training = test::record_of("transformer/model=gpt2-tiny",
                                    {test::seconds("step_time", 1.0, Interval{0.9, 1.1}),
                                     test::seconds("transfer", 0.2), test::seconds("arrival_skew", 0.1)});
  training.device = "cuda";
  training.params = {{"model", "gpt2-tiny"}};
  training.world_ranks = 2;
  training.ranks = {{0, "n1", "NVIDIA H100 80GB HBM3", 1.0}, {1, "n2", "NVIDIA H100 80GB HBM3", 1.5}};
  training.ranks[0].pace = 1, training.ranks[1].pace = 1.5;
  training.spans = {{"data_wait", 0.3}};
  Record product = test::record_of("gemm/dtype=bf16/m=8192/n=8192/k=8192",
                                   {test::metric("throughput", 7e14, "FLOP/s", Interval{6.9e14, 7.1e14})});
  product.device = "cuda";
  product.protocol = {{"form", "repeat"}, {"cache", "cold"}, {"min_samples", 5}};
  product.ranks = {{0, "n1", "NVIDIA H100 80GB HBM3", 1.5e-3}};
  product.labels = {{"rack", "7"}};
  std::vector<RunData> runs;
  runs.push_back(test::run_of({training, product}, "r", {{"labels", {{"site", "north"}}}}));
  return RunSet(std::move(runs));
}

const gate::Catalogue& shipped_catalogue() {
  static const gate::Catalogue catalogue = gate::load_catalogue(configs_dir() / "gate.json");
  return catalogue;
}

// Appends what a gate found.
void remember_again(const std::filesystem::path& file, std::time_t now, const gate::Past& past) {
  const gate::Catalogue& catalogue = shipped_catalogue();
  gate::Decision decision;
  decision.findings = {{"xid-fatal", Severity::fault, "XID 79"}};
  gate::remember(file, now, decision, catalogue);
  expect(gate::read_past(file, now).drain == past.drain + 1, "a gate that is not remembered");
}

// Whatever an acceptance finds where suspicions are kept, it notes it or goes on, and a host is not healthier for it.
void remember_suspicion(std::string_view input) {
  const std::filesystem::path past = folder() / "suspicions.json";
  std::ofstream(past, std::ios::binary) << input;
  std::vector<fitness::AcceptedHost> hosts = {{.host = "b"}};
  hosts.front().checks["pairs"].note(Fitness::unsure, "x");
  hosts.front().checks["pairs"].blame("pair", "b - c");
  accept::State state;
  state.started = "2026-11-23T00:00:00Z";
  std::vector<std::string> notes;
  accept::escalate_over_time(hosts, state, past, notes);
  expect(hosts.front().state() == Fitness::unsure || hosts.front().state() == Fitness::fail,
         "a suspicion was forgotten");
}

}  // namespace

void sheets(std::string_view input) {
  static const MemoryFile file(folder() / "sheets" / "sheet.json");
  static const MemoryFile state(folder() / "acceptance" / accept::state_file);
  file.write(input);
  const std::string& path = file.path();
  HardwareSheet sheet;
  if (accepts(path, [&] { sheet = read_hardware(path); }))
    for (const auto& [dtype, peak] : sheet.peak) expect(peak > 0 && std::isfinite(peak), "an invalid peak of " + dtype);
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    accept::Level level;
    if (!accepts(path, [&] { level = accept::read_level(path, device); })) continue;
    expect(level.pair_share > 0 && level.pair_share <= 1, "an invalid share of the median pair");
    expect(accept::hash_of(level).size() == 64, "a level without a hash");
  }
  gate::Policy policy;
  if (accepts(path, [&] { policy = gate::read_policy(path, shipped_catalogue()); }) && policy.at_most)
    expect(policy.at_most->within_seconds > 0 && (policy.at_most->share || policy.at_most->count > 0), "no limit");
  static const RunSet runs = some_runs();
  std::vector<report::Rule> rules;
  if (accepts(path, [&] { rules = report::load_rules(path); })) {
    for (const report::Rule& rule : rules) expect(!rule.id.empty() && !rule.says.empty(), "a rule that says nothing");
    for (const report::Diagnosis& one : report::diagnose(runs, rules))
      for (const report::RuleResult& fired : one.fired) {
        expect(fired.state >= report::RuleState::warn && !fired.text().empty(), "a cause without a sentence");
        expect(!fired.ceiling() || *fired.ceiling() >= 1, "a case that becomes slower without the cause");
      }
  }
  accepts(path, [&] {
    for (const report::sizing::PublishedRun& run : report::sizing::read_published(path).training)
      expect(run.flops_per_token() > 0 && run.utilization(1e15) >= 0, "a published run without work");
  });
  accepts(path, [&] {
    for (const report::PublishedFigure& figure : report::load_published(folder() / "sheets")) {
      expect(!report::published_text(figure).empty(), "a published figure without a text");
      (void)dump_line(report::published_json(figure));
      for (const Entry& entry : runs.entries())
        for (const Metric& metric : entry.record->metrics) (void)report::is_of(figure, entry, metric);
    }
  });
  accepts(path, [&] {
    // The reference's own points as runs, all of which reached the target.
    const training::Convergence reference = training::read_convergence(path);
    std::vector<training::QualityRun> own;
    for (const double samples : reference.samples)
      own.push_back({own.size(), true, samples / 1000, static_cast<std::int64_t>(samples)});
    const auto verdict = training::judge_convergence(own, reference.global_batch, reference);
    expect(verdict.verdict == training::Verdict::as_expected, "reference points that are not as expected");
    const training::Score score = training::olympic_score(own);
    expect(score.seconds && *score.seconds > 0, "runs without a score");
  });
  accepts(path, [&] {
    const training::Schedule schedule = training::read_recipe(path).schedule;
    for (const std::int64_t step : {std::int64_t{1}, schedule.warmup_steps + 1, schedule.total_steps + 1}) {
      const double rate = training::learning_rate(schedule, step);
      expect(rate >= 0 && rate <= schedule.base, "a learning rate beyond the base");
    }
  });
  accepts(path, [&] { (void)gate::load_catalogue(path); });

  state.write(input);
  accept::State read;
  if (accepts("--resume ", [&] { read = accept::read_state(folder() / "acceptance"); })) {
    const std::filesystem::path copy = folder() / "acceptance-again";
    std::filesystem::create_directory(copy);
    accept::write_state(copy, read);
    expect(dump_line(json_of(accept::read_state(copy))) == dump_line(json_of(read)),
           "a state that does not round-trip");
  }
  remember_suspicion(input);
  constexpr std::time_t now = 1795435200;  // 2026-11-23
  gate::Past past;
  if (!accepts("cannot read " + path, [&] { past = gate::read_past(path, now); })) return;
  expect(past.suspect + past.drain <= input.size(), "more gates than lines");
  expect((past.suspect + past.drain > 0) != past.text().empty(), "past gates without a text, or the reverse");
  const std::filesystem::path gates = folder() / "gates.jsonl";
  std::ofstream(gates, std::ios::binary) << input;
  if (input.size() < (200 << 10)) remember_again(gates, now, past);  // of a longer file the older half is left out
}

}  // namespace assay::fuzz
