// A run directory through every report. The first line of the input is run.json, the others are records.jsonl.
#include "cli/catalogue.h"
#include "harness/fitness/floors/pack.h"
#include "harness/plan/plan.h"
#include "harness/record/run_dir.h"
#include "harness/record/validation.h"
#include "harness/run/results.h"
#include "reports/acceptance/document.h"
#include "reports/compare/compare.h"
#include "reports/page/page.h"
#include "reports/render/render.h"
#include "tests/fuzz/fuzz.h"

#include <nlohmann/json.hpp>

namespace assay::fuzz {

namespace {

fitness::Floors some_floors() {
  const MemoryFile file(folder() / "run-floors.json");
  file.write(R"({"schema":1,"floors":[
    {"key":"*","metric":"throughput","unit":"FLOP/s","at_least":1e9,"source":"a"},
    {"key":"memory/*","metric":"bandwidth","unit":"B/s","at_least":0.9,"relative_to":"fleet_median","source":"a"}]})");
  return fitness::load_floors(file.path());
}

}  // namespace

void run(std::string_view input) {
  static const MemoryFile run_json(folder() / "runs" / "run" / "run.json");
  static const MemoryFile records(folder() / "runs" / "run" / "records.jsonl");
  static const std::filesystem::path dir = folder() / "runs" / "run";
  static const fitness::Floors floors = some_floors();
  static const std::vector<std::string> families = {"gemm", "memory"};
  const std::size_t line = input.find('\n');
  run_json.write(input.substr(0, line));
  records.write(line == input.npos ? std::string_view() : input.substr(line + 1));

  std::vector<RunData> read;
  if (!accepts(dir.string(), [&] { read = read_runs({dir}); })) return;
  const RunData whole = read_run(dir);
  for (const std::string& problem : whole.problems) expect_message(problem, "records.jsonl line ");
  expect(whole.records.size() == read.front().records.size(), "the readers disagree");
  (void)exit_code_of(whole, 3);
  if (whole.run.contains("plan"))
    accepts("run.json",
            [&] { (void)plan_from_expanded(whole.run["plan"], "run.json", cli::catalogue(), 4, DeviceKind::cpu); });
  for (const Record& record : whole.records) accepts("", [&] { (void)timed_samples(whole, record); });

  // What a record took is validated by a run that holds it.
  std::set<std::string> validated;
  if (accepts(dir.string(), [&] { validated = validated_paths(dir.parent_path()); }))
    for (Record record : whole.final_records()) {
      label_unvalidated(record, {});
      const bool labelled = record.labels.contains(unvalidated_label);
      lift_label(record, validated);
      expect(labelled != hardware_paths(record).empty(), "a path without a label, or the reverse");
      expect(!(record.status == Status::ok && record.comparable) || !record.labels.contains(unvalidated_label),
             "a label of what is validated");
    }
  accepts("", [&] {
    fitness::Pack pack;
    pack.runs = {fitness::pack_run(dir)};
    expect(fitness::runs_of(pack, "p.tar").front().records.size() == whole.records.size(),
           "another number of records in a pack");
  });

  const RunSet runs(std::move(read));
  const report::Document document = report::whole_report(runs, {.prices = {}, .nccl_table = true});
  (void)report::render_terminal(document, {.colour = true, .width = 60});
  (void)report::render_markdown(document);
  (void)report::render_html(document);
  expect(Json::parse(report::render_json(document)).is_object(), "a report that is not JSON");
  accepts(floors.file, [&] {
    const fitness::CheckResult check = fitness::check(runs, floors, families);
    (void)report::render_terminal(report::check_document(check), {});
    (void)report::render_junit(report::check_suite(check));
  });
  // It needs the samples where a figure has no interval.
  accepts("", [&] {
    const report::CompareResult same = report::compare(runs, runs, {.tolerance = 0.03, .prices = {}});
    (void)report::render_html(same.document);
    expect(same.counts.exit_code() != ExitCode::failed, "a run slower than itself");
  });
}

}  // namespace assay::fuzz
