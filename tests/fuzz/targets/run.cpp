// A run directory through every report. The first line of the input is run.json, the others are records.jsonl.
#include "cli/catalogue.h"
#include "harness/plan/plan.h"
#include "harness/record/run_dir.h"
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
  static const MemoryFile run_json(folder() / "run" / "run.json");
  static const MemoryFile records(folder() / "run" / "records.jsonl");
  static const std::filesystem::path dir = folder() / "run";
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
  const report::CompareResult same = report::compare(runs, runs, {.tolerance = 0.03, .prices = {}});
  (void)report::render_html(same.document);
  expect(same.counts.exit_code() != ExitCode::failed, "a run slower than itself");
}

}  // namespace assay::fuzz
