// Prints a page with one of everything, for the browser tests.
#include "reports/render/render.h"

#include <cmath>
#include <cstdio>

namespace {

using namespace assay;
using namespace assay::report;

std::vector<Answer> answers() {
  const std::string machine = "AMD Zen 4, 2 cores, 24 GiB, 8 x NVIDIA H100 80GB HBM3, p5.48xlarge";
  return {
      {"right",
       "Right",
       "yes: 2 measured cases, and every answer that was timed was checked and correct (9 checks)",
       Tone::good,
       {}},
      {"steady",
       "Steady",
       "no: while 2 cases of 4 were measured, others used 1.8 CPUs (python3, pid 77: 0.9; other containers or the "
       "kernel: "
       "0.9). Disturbed in 5 of 5 runs: changes below 8.2 % cannot be seen. Only lower bounds: gemm f32 2048 x 2048 x "
       "2048, memory triad 128 MiB, train resnet-tiny f32 32 and 5 more",
       Tone::warn,
       {"gemm f32 2048 x 2048 x 2048: others used 1.8 CPUs (python3, pid 77: 0.9)"}},
      {"normal",
       "Normal",
       "no: of 3 key figures with references 1 is below all of them: gemm f32 2048 x 2048 x 2048 412 GFLOP/s: number 4 "
       "beside 3 reference runs (430 – 440 GFLOP/s) of such a machine (" +
           machine + "); of its peaks: gemm f32 92 %",
       Tone::bad,
       {"gemm f32 2048 x 2048 x 2048 412 GFLOP/s; published by Someone: 420 – 450 GFLOP/s (https://example.org/a)"}},
      {"limit", "Limit", "unknown: no training step was measured", Tone::plain, {}}};
}

Section key_figures() {
  Bars bars{
      "bars-1", "", "Bar: the figure; whiskers: its 95 % interval; dashed line: the peak; shade: references.", {}, {}};
  BarRow gemm{"gemm f32 2048 x 2048 x 2048", "412 GFLOP/s ± 0.7 %", {0.86}};
  gemm.range = Interval{0.85, 0.87};
  gemm.peak = 0.97;
  gemm.reference = Interval{0.88, 0.92};
  gemm.published = {{0.87, 0.94}, {0.96, 0.96}};
  gemm.link = "r-0001";
  bars.rows = {gemm, {"memory triad 128 MiB", "35 GB/s ± 1.1 %", {0.5}}};
  Bars steps{
      "step-bars", "", "", {"forward", "backward", "optimizer", "waiting for data", "communication", "other"}, {}};
  steps.rows = {{"train resnet-tiny f32 32", "12 ms", {0.3, 0.4, 0.1, 0.05, 0.05, 0.1}}};
  return {"figures", "The figures that matter", {bars, steps}};
}

Section summary() {
  Table table{"cases",
              "",
              {{"case", "case"},
               {"median", "median", Align::right},
               {"of_peak", "of peak", Align::right},
               {"verdict", "verdict"}},
              {}};
  const auto figure = [](const char* text, double value) {
    return Cell{text, {{"value", value}, {"unit", "FLOP/s"}}, Tone::plain, "r-0001"};
  };
  table.rows = {
      {{"gemm f32 2048 x 2048 x 2048"}, figure("412 GFLOP/s", 4.12e11), {"92 %", 0.92}, {"ok", nullptr, Tone::good}},
      {{"gemm bf16 65536 x 64 x 64"},
       figure("900 MFLOP/s", 9e8),
       {"± 16 %", 0.16, Tone::warn},
       {"ok (2 disturbed)", nullptr, Tone::good}},
      {{"collective all_reduce 64 MiB, 2 ranks"},
       {"–", nullptr, Tone::faint},
       {"–", nullptr, Tone::faint},
       {"skipped: no GPU", nullptr, Tone::faint}},
      {{"train resnet-tiny f32 32"},
       figure("2 GFLOP/s", 2e9),
       {"–", nullptr, Tone::faint},
       {"FAILED", nullptr, Tone::bad}}};
  return {"summary", "Summary", {table, Text{"A figure to look at twice.", Tone::warn}}};
}

Section roofline() {
  Figure figure{"roofline",
                "Roofline",
                "Matrix products reach 92 % of the measured roof of 448 GFLOP/s.",
                {"arithmetic intensity", "FLOP/B", true},
                {"throughput", "FLOP/s", true},
                {}};
  Curve measured{"gemm", Mark::points, {}}, roof{"measured roof", Mark::line, {}, true},
      memory{"memory", Mark::points, {}};
  for (int i = 0; i < 8; ++i) {
    const double x = 16 * std::pow(2.0, i), y = std::min(35e9 * x, 448e9) * (0.8 + 0.02 * i);
    measured.points.push_back({x, y, Interval{y * 0.95, y * 1.04}, "gemm f32, the size of " + std::to_string(i)});
  }
  for (const double x : {0.1, 12.8, 4096.0}) roof.points.push_back({x, std::min(35e9 * x, 448e9)});
  memory.points.push_back({1.0 / 12, 2.8e9, {}, "memory triad 128 MiB"});
  figure.curves = {measured, memory, roof};
  return {"roofline", "Roofline", {figure}};
}

Section scaling() {
  Figure efficiency{"efficiency",   "Strong scaling",    "Efficiency falls from 1 to 0.81 at 8 ranks.",
                    {"ranks", "1"}, {"efficiency", "1"}, {}};
  Curve measured{"measured", Mark::line_and_points, {}}, fit{"Amdahl", Mark::line, {}, true};
  for (const int n : {1, 2, 4, 8}) {
    const double y = 1 / (1 + 0.033 * (n - 1));
    measured.points.push_back({static_cast<double>(n), y, Interval{y - 0.02, y + 0.02}});
    fit.points.push_back({static_cast<double>(n), y * 1.005});
  }
  efficiency.curves = {measured, fit};
  Figure message{"messages",
                 "All-reduce",
                 "Time of a message grows with its size from 2 us to 30 ms.",
                 {"message", "B", true},
                 {"time", "s", true},
                 {}};
  for (const char* name : {"ring", "tree", "2 ranks", "4 ranks", "model"}) {
    Curve curve{name, Mark::line_and_points, {}, std::string(name) == "model"};
    const double slope = 1e-10 * static_cast<double>(1 + message.curves.size());
    for (int k = 3; k <= 28; k += 5) curve.points.push_back({std::pow(2.0, k), 2e-6 + slope * std::pow(2.0, k)});
    message.curves.push_back(curve);
  }
  return {"scaling", "Scaling", {efficiency, message}};
}

Section samples() {
  Figure line{"timeline",
              "Samples over time",
              "5,000 samples of about 1 ms, one of 9 ms.",
              {"since the start", "s"},
              {"sample", "s"},
              {}};
  Curve curve{"samples", Mark::points, {}};
  for (int i = 0; i < 5000; ++i)
    curve.points.push_back({i * 0.002, 1e-3 + 5e-5 * std::sin(i * 0.7) + (i == 2503 ? 8e-3 : 0)});
  line.curves = {curve};
  Figure bars{"cost",
              "Cost per million tokens",
              "The 4-GPU machine is the cheapest, at 0.31 USD.",
              {"machine",
               "",
               false,
               {"8 x H100 on demand, us-east-1", "8 x H100 spot", "4 x A100",
                "a machine whose name is long beyond all reason <b>&amp;"}},
              {"cost", "USD"},
              {}};
  bars.curves = {{"per million tokens",
                  Mark::bars,
                  {{0, 0.52, Interval{0.5, 0.55}}, {1, 0.4}, {2, 0.31, Interval{0.3, 0.33}}, {3, 0.9}}}};
  Figure histogram{"histogram",        "Distribution",   "Most samples are between 1.0 and 1.2 ms.",
                   {"step time", "s"}, {"samples", "1"}, {}};
  histogram.curves = {{"steps", Mark::bars, {{1.0e-3, 12}, {1.1e-3, 34}, {1.2e-3, 8}, {1.3e-3, 0}, {1.4e-3, 2}}}};
  return {"samples", "Samples", {line, histogram, bars}};
}

Section appendix() {
  Table table{"records", "How each was measured", {{"case", "case"}, {"protocol", "protocol"}, {"place", "place"}}, {}};
  table.rows = {{{"gemm/dtype=f32/m=2048/n=2048/k=2048/transpose=nn/cache=cold/duration=burst"},
                 {"random normal data, cold cache, 20 repetitions per sample, stopped by low noise"},
                 {"r/records.jsonl line 1"}}};
  table.anchors = {"r-0001"};
  return {"appendix",
          "How it was measured",
          {table, Verbatim{"nccl", "#  size  time  algbw\n   1024   2.1   0.49\n"},
           List{"environment", {"machine: AMD Zen 4, 2 cores", "kernel: 6.1"}}}};
}

}  // namespace

int main() {
  Document document;
  document.title = "Assay report";
  document.headline = "AMD Zen 4, 2 cores, 24 GiB, no GPU · plan quick, 4 cases in 1 min 15 s · 1 finding (assay env)";
  document.verdict = "held: 2 · failed: 1 · skipped: 1 (no GPU)";
  document.tone = Tone::bad;
  document.answers = answers();
  document.sections = {key_figures(), summary(), scaling(), roofline(), samples(), appendix()};
  std::fputs(render_html(document).c_str(), stdout);
}
