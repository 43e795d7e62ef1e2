#include "reports/scaling/tables.h"

#include "harness/core/units.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

// Residuals beyond these mean that the model does not hold.
constexpr double fair_rms = 0.10;
constexpr double poor_rms = 0.25;

Tone tone_of_rms(double rms) { return rms > poor_rms ? Tone::bad : rms > fair_rms ? Tone::warn : Tone::plain; }

// A signed relative error.
Cell error_cell(double error, Tone tone = Tone::plain) {
  const double percent = std::round(1000 * error) / 10 + 0.0;  // + 0: no "-0.0"
  return {fmt::format("{:+.1f} %", percent), {{"value", error}, {"unit", "1"}}, tone, {}, error};
}

Cell relative_cell(double share, Tone tone) {
  return {fmt::format("{:.1f} %", 100 * share), {{"value", share}, {"unit", "1"}}, tone, {}, share};
}

Cell rms_cell(double rms) { return relative_cell(rms, tone_of_rms(rms)); }

Cell maybe_cell(const std::optional<Estimate>& estimate, std::string_view unit) {
  return estimate ? quantity_cell(*estimate, unit) : unknown_cell();
}

Cell maybe_interval_cell(const std::optional<Estimate>& estimate, std::string_view unit) {
  return interval_cell(estimate ? estimate->interval : std::nullopt, unit);
}

// "8 B – 4 KiB"
Cell sizes_cell(const MessageLine& line) {
  const double low = line.points.front().bytes, high = line.points.back().bytes;
  return {sizes_text(line), {low, high}, Tone::plain, {}, low};
}

Cell bytes_cell(double bytes) {
  return {format_bytes(bytes), {{"value", bytes}, {"unit", "B"}}, Tone::plain, {}, bytes};
}

bool holds(const FittedLine& line) { return line.fit && line.fit->rms <= poor_rms; }

// A reader must know this about a line before using its figures: in brief and in full.
struct Remark {
  std::string brief;
  std::string full;
};

Remark remark_of(const FittedLine& line) {
  if (!line.fit) {
    const int sizes = static_cast<int>(line.line.points.size());
    const std::string brief = fmt::format("{}: {} more needed", plural(sizes, "size"), min_sizes - sizes);
    return {brief, brief + " for a line and its residual"};
  }
  if (line.fit->rms > poor_rms)
    return {"no line fits", "no line fits: more sizes in between may show where the algorithm changes"};
  if (!line.fit->latency)
    return {"latency does not show", "latency does not show at these sizes: measure smaller ones"};
  if (!line.fit->bandwidth)
    return {"bandwidth does not show", "bandwidth does not show at these sizes: measure larger ones"};
  if (!line.fit->half_size)
    return {"n1/2 not determined", "these sizes do not determine where bandwidth takes over from latency"};
  return {};
}

std::string words_of(const FormFit& fit, bool several_worlds, bool several_forms) {
  switch (fit.verdict) {
    case Verdict::fits_best: return several_forms ? "fits best" : "fits";
    case Verdict::refuted: return "does not fit";
    case Verdict::cannot_tell: break;
  }
  if (!several_forms) return "fits poorly";
  return several_worlds ? "cannot tell" : "cannot tell: one world size";
}

}  // namespace

std::string sizes_text(const MessageLine& line) {
  const double low = line.points.front().bytes, high = line.points.back().bytes;
  return low == high ? format_bytes(low) : format_bytes(low) + " – " + format_bytes(high);
}

std::optional<Table> amdahl_table(const std::vector<StrongFit>& fits) {
  if (fits.empty()) return std::nullopt;
  Table table{"amdahl",
              "Amdahl: T(N) = T(1) (s + (1-s)/N); s is all that is not divided between ranks, including communication",
              {{"series"},
               right("serial", "serial fraction s"),
               right("serial_ci95", "95 %"),
               right("time_1", "T(1)"),
               right("limit", "max speed-up 1/s"),
               right("rms", "residual"),
               right("sizes", "world sizes"),
               {"remark"}}};
  for (const StrongFit& fit : fits) {
    const Amdahl& amdahl = fit.amdahl;
    if (!amdahl.applies) {
      std::vector<Cell> cells(table.columns.size(), unknown_cell());
      cells.front() = text_cell(fit.series->title);
      cells[table.columns.size() - 2] = count_cell(fit.series->points.size());
      cells.back() = text_cell("does not apply: more ranks are slower", Tone::warn);
      table.rows.push_back(std::move(cells));
      continue;
    }
    std::string remark;
    if (amdahl.freedom == 0) remark = "determined by two sizes: no residual to judge it by";
    if (amdahl.serial == 0) remark = "no serial fraction: linear or faster";
    Cell limit = unknown_cell();
    if (amdahl.serial > 1e-9) {
      const double speedup = 1 / amdahl.serial;
      limit = {fmt::format("{:.3g} x", speedup), {{"value", speedup}, {"unit", "1"}}, Tone::plain, {}, speedup};
    }
    table.rows.push_back({text_cell(fit.series->title), percent_cell({amdahl.serial, amdahl.interval}),
                          percent_interval_cell(amdahl.interval), quantity_cell({amdahl.time}, "s"), limit,
                          amdahl.freedom == 0 ? unknown_cell() : rms_cell(amdahl.rms),
                          count_cell(fit.series->points.size()), text_cell(remark, Tone::faint)});
  }
  return table;
}

std::optional<Table> prediction_table(const std::vector<SeriesPrediction>& predictions) {
  Table table{"prediction",
              "The next world sizes, by the model of `assay project`, tested on the largest size",
              {{"series"},
               right("ranks"),
               right("time"),
               right("time_ci95", "95 %"),
               right("efficiency"),
               right("hold_out_error", "error at the largest")}};
  for (const auto& [series, projection] : predictions)
    for (const Projected& size : projection.sizes) {
      Cell share = size.time ? percent_cell(size.efficiency) : unknown_cell();
      if (size.time && size.efficiency.interval) share.data["ci95"] = interval_json(size.efficiency.interval);
      Cell error = error_cell(projection.error, tone_of_rms(std::abs(projection.error)));
      error.data["ranks"] = projection.held_out;
      table.rows.push_back(
          {text_cell(series->title), count_cell(size.ranks),
           size.time ? quantity_cell(*size.time, "s") : Cell{"cannot say", {{"value", nullptr}}, Tone::warn},
           maybe_interval_cell(size.time, "s"), std::move(share), std::move(error)});
    }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

std::optional<Table> model_table(const std::vector<SeriesPrediction>& predictions) {
  if (predictions.empty()) return std::nullopt;
  Table table{"prediction_models",
              "The models behind the predictions; the largest world size is predicted from the smaller ones, too",
              {{"series"},
               {"model"},
               right("rms", "residual"),
               right("held_out", "held out"),
               right("measured"),
               right("predicted"),
               right("error")}};
  for (const auto& [series, projection] : predictions)
    table.rows.push_back({text_cell(series->title),
                          text_cell(projection.model),
                          rms_cell(projection.rms),
                          {plural(projection.held_out, "rank"), projection.held_out},
                          quantity_cell({projection.held_out_time}, "s"),
                          quantity_cell({projection.held_out_predicted}, "s"),
                          error_cell(projection.error, tone_of_rms(std::abs(projection.error)))});
  return table;
}

std::optional<Table> message_table(const std::vector<FittedLine>& lines) {
  Table table{"collectives",
              "Collectives: time A + S/B for a message of S bytes; from n1/2 = A B on, bandwidth dominates",
              {{"series", "collective"},
               right("ranks"),
               {"sizes"},
               right("latency", "latency A"),
               right("bandwidth", "algbw B"),
               right("half_size", "n1/2"),
               right("rms", "residual"),
               {"remark"}}};
  for (const FittedLine& line : lines) {
    if (!line.fit) continue;
    // Coefficients of a line that does not fit would be mistaken for figures of the machine.
    const bool held = holds(line);
    table.rows.push_back({text_cell(line.series->title), count_cell(line.line.ranks), sizes_cell(line.line),
                          maybe_cell(held ? line.fit->latency : std::nullopt, "s"),
                          maybe_cell(held ? line.fit->bandwidth : std::nullopt, "B/s"),
                          maybe_cell(held ? line.fit->half_size : std::nullopt, "B"), rms_cell(line.fit->rms),
                          text_cell(remark_of(line).brief, Tone::faint)});
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

std::optional<Table> line_table(const std::vector<FittedLine>& lines) {
  if (lines.empty()) return std::nullopt;
  Table table{"collective_fits",
              "Collectives: the fits of A + S/B, with intervals",
              {{"series", "collective"},
               right("ranks"),
               {"sizes"},
               right("points"),
               right("latency_ci95", "latency A, 95 %"),
               right("bandwidth_ci95", "algbw B, 95 %"),
               right("half_size_ci95", "n1/2, 95 %"),
               {"remark"}}};
  for (const FittedLine& line : lines) {
    const auto of = [&](std::optional<Estimate> LineFit::*member) {
      return holds(line) ? (*line.fit).*member : std::optional<Estimate>();
    };
    std::string remark = remark_of(line).full;
    if (!line.whole) remark = "fitted in pieces: no single line fits all sizes" + (remark.empty() ? "" : "; " + remark);
    table.rows.push_back({text_cell(line.series->title), count_cell(line.line.ranks), sizes_cell(line.line),
                          count_cell(line.line.points.size()), maybe_interval_cell(of(&LineFit::latency), "s"),
                          maybe_interval_cell(of(&LineFit::bandwidth), "B/s"),
                          maybe_interval_cell(of(&LineFit::half_size), "B"), text_cell(remark, Tone::faint)});
  }
  return table;
}

std::optional<Table> form_table(const std::vector<FittedForms>& all) {
  Table table{"collective_forms",
              "Which algorithm: each form fitted over all world sizes; α per message, B per link",
              {{"series", "collective"},
               {"form"},
               {"formula", "t(n, S)"},
               {"ranks"},
               {"sizes"},
               right("alpha", "α"),
               right("alpha_ci95", "95 %"),
               right("bandwidth", "B"),
               right("bandwidth_ci95", "95 %"),
               right("rms", "residual"),
               {"verdict"},
               {"source"}}};
  for (const FittedForms& fitted : all) {
    for (const FormFit& fit : fitted.forms) {
      // Coefficients of a form that does not fit would be mistaken for figures of the machine.
      const bool held = fit.verdict != Verdict::refuted;
      const std::optional<Estimate> alpha = held ? fit.alpha : std::nullopt;
      const std::optional<Estimate> bandwidth = held ? fit.bandwidth : std::nullopt;
      table.rows.push_back({text_cell(fitted.series->title),
                            text_cell(std::string(fit.form.name)),
                            text_cell(std::string(fit.form.formula)),
                            {joined(fit.worlds), fit.worlds},
                            text_cell(fitted.sizes),
                            maybe_cell(alpha, "s"),
                            maybe_interval_cell(alpha, "s"),
                            maybe_cell(bandwidth, "B/s"),
                            maybe_interval_cell(bandwidth, "B/s"),
                            rms_cell(fit.rms),
                            text_cell(words_of(fit, fit.worlds.size() > 1, fitted.forms.size() > 1),
                                      fit.verdict == Verdict::fits_best ? Tone::good : Tone::plain),
                            text_cell(std::string(fit.form.source), Tone::faint)});
    }
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

std::optional<Table> residual_table(const std::vector<FittedLine>& lines, const std::vector<StrongFit>& fits) {
  Table table{"residuals",
              "Residuals: measured / fitted - 1",
              {{"series"},
               {"fit"},
               right("ranks"),
               right("bytes", "message"),
               right("measured"),
               right("fitted"),
               right("residual")}};
  const auto row = [&](const std::string& title, const char* fit, int ranks, Cell bytes, const Estimate& measured,
                       double fitted, double residual) {
    const double error = std::expm1(residual);
    table.rows.push_back({text_cell(title), text_cell(fit), count_cell(ranks), std::move(bytes),
                          quantity_cell(measured, "s"), quantity_cell({fitted}, "s"),
                          error_cell(error, tone_of_rms(std::abs(error)))});
  };
  for (const auto& [series, amdahl] : fits)
    for (std::size_t i = 0; amdahl.applies && i < series->points.size(); ++i)
      row(series->title, "Amdahl", series->points[i].ranks, unknown_cell(), series->points[i].time,
          amdahl.at(series->points[i].ranks), amdahl.residuals[i]);
  for (const FittedLine& line : lines) {
    if (!line.fit) continue;
    for (std::size_t i = 0; i < line.line.points.size(); ++i) {
      const MessagePoint& point = line.line.points[i];
      row(line.series->title, "A + G S", line.line.ranks, bytes_cell(point.bytes), point.time,
          line.fit->at(point.bytes), line.fit->residuals[i]);
    }
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

std::optional<Table> rank_table(const std::vector<RankSpread>& spreads) {
  if (spreads.empty()) return std::nullopt;
  Table table{"ranks",
              "Ranks: slowest over fastest, by their own medians",
              {{"case"},
               right("fastest"),
               right("slowest"),
               right("spread"),
               right("slowest_rank", "slowest rank"),
               {"host", "its host"},
               {"times_slowest", "slowest in"}}};
  for (const RankSpread& spread : spreads) {
    Cell title = text_cell(spread.title);
    title.link = spread.first.anchor();
    table.rows.push_back({title,
                          quantity_cell({spread.fastest}, "s"),
                          quantity_cell({spread.slowest}, "s"),
                          relative_cell(spread.spread, spread.spread > straggling ? Tone::warn : Tone::plain),
                          count_cell(spread.slowest_rank),
                          spread.host.empty() ? unknown_cell() : text_cell(spread.host),
                          {fmt::format("{} of {}", spread.times_slowest, plural(spread.records, "record")),
                           {{"records", spread.times_slowest}, {"of", spread.records}}}});
  }
  return table;
}

std::vector<Text> missing_texts(const std::vector<FittedLine>& lines) {
  std::set<std::string> titles, ops;
  std::set<int> worlds;
  static const std::set<std::string_view> known{"all_reduce", "all_gather", "reduce_scatter",
                                                "broadcast",  "all_to_all", "send_recv"};
  for (const FittedLine& line : lines) {
    if (line.fit) continue;
    titles.insert(line.series->title);
    worlds.insert(line.line.ranks);
    if (known.contains(line.series->op)) ops.insert(line.series->op);
  }
  if (titles.empty()) return {};
  const std::string which = *titles.begin() + and_more(titles.size(), 1);
  const std::string set = ops.empty() ? "" : fmt::format(" --set collective.op={}", fmt::join(ops, ","));
  return {{fmt::format("No alpha-beta fit of {}: it needs at least {} message sizes; run: assay run collective{} --set "
                       "collective.bytes=8,4KiB,64KiB,1MiB,16MiB --ranks {}",
                       which, min_sizes, set, fmt::join(worlds, ",")),
           Tone::faint}};
}

}  // namespace assay::report::scaling
