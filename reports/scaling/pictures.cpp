#include "reports/scaling/tables.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/model/cells.h"
#include "reports/scaling/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

constexpr std::size_t series_per_picture = 4;  // plus the ideal makes five curves
constexpr int steps_per_fit = 24;              // between the points drawn of a model

// Evenly spaced on a logarithmic axis.
std::vector<double> spread_out(double low, double high) {
  std::vector<double> places;
  for (int i = 0; i <= steps_per_fit; ++i)
    places.push_back(low * std::pow(high / low, static_cast<double>(i) / steps_per_fit));
  return places;
}

std::string numbered(const std::string& id, std::size_t index) {
  return index == 0 ? id : fmt::format("{}-{}", id, index + 1);
}

std::string sentence(const std::vector<std::string>& parts) { return fmt::format("{}.", fmt::join(parts, "; ")); }

const StrongFit* fit_of(const std::vector<StrongFit>& fits, const Series& series) {
  for (const StrongFit& fit : fits)
    if (fit.series == &series) return &fit;
  return nullptr;
}

const Projection* projection_of(const std::vector<SeriesPrediction>& predictions, const Series& series) {
  for (const SeriesPrediction& each : predictions)
    if (each.series == &series) return &each.projection;
  return nullptr;
}

}  // namespace

std::vector<Figure> efficiency_pictures(const std::vector<Series>& all, Mode mode) {
  std::vector<const Series*> shown;
  for (const Series& series : all)
    if (series.mode == mode) shown.push_back(&series);
  std::vector<Figure> figures;
  const std::string word = mode == Mode::strong ? "strong" : "weak";
  for (std::size_t from = 0; from < shown.size() && figures.size() < max_pictures; from += series_per_picture) {
    Figure figure{numbered("scaling-" + word, figures.size()),
                  fmt::format("{} scaling efficiency over ranks", mode == Mode::strong ? "Strong" : "Weak"),
                  "",
                  {"ranks", "", true, {}},
                  {"efficiency", "1", false, {}},
                  {}};
    std::vector<std::string> phrases;
    double low = 0, high = 0;
    for (std::size_t i = from; i < std::min(shown.size(), from + series_per_picture); ++i) {
      const Series& series = *shown[i];
      Curve curve{series.title, Mark::line_and_points, {}};
      for (std::size_t p = 0; p < series.points.size(); ++p) {
        const Estimate share = efficiency(series, p);
        const int ranks = series.points[p].ranks;
        curve.points.push_back({static_cast<double>(ranks), share.value, share.interval,
                                fmt::format("{}: {}", plural(ranks, "rank"), percent_text(share))});
      }
      const Point& last = curve.points.back();
      phrases.push_back(fmt::format("{} keeps {}", series.title, percent_text({last.y, last.range})) + " at " +
                        plural(static_cast<int>(last.x), "rank"));
      low = low == 0 ? curve.points.front().x : std::min(low, curve.points.front().x);
      high = std::max(high, last.x);
      figure.curves.push_back(std::move(curve));
    }
    figure.curves.push_back({"ideal", Mark::line, {{low, 1}, {high, 1}}, true});
    figure.alt = sentence(phrases);
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<Figure> time_pictures(const std::vector<Series>& all, const std::vector<StrongFit>& fits,
                                  const std::vector<SeriesPrediction>& predictions) {
  std::vector<Figure> figures;
  for (const Series& series : all) {
    if (figures.size() == max_pictures) break;
    const bool quality = series.figure == "time_to_quality";
    Figure figure{fmt::format("scaling-time-{}", figures.size() + 1),
                  fmt::format("{} over ranks: {}", quality ? "Time to quality" : "Step time", series.title),
                  "",
                  {"ranks", "", true, {}},
                  {quality ? "time to quality" : "step time", "s", true, {}},
                  {}};
    const auto at = [&](std::size_t i) { return static_cast<double>(series.points[i].ranks); };
    const double low = at(0), high = at(series.points.size() - 1);
    Curve measured{"measured", Mark::line_and_points, {}};
    for (const WorldPoint& point : series.points)
      measured.points.push_back({static_cast<double>(point.ranks), point.time.value, point.time.interval,
                                 fmt::format("{}: {}", plural(point.ranks, "rank"), quantity_text(point.time, "s"))});
    std::vector<std::string> phrases{fmt::format("Measured from {} at {}",
                                                 quantity_text(series.points.front().time, "s"),
                                                 plural(series.points.front().ranks, "rank")) +
                                     fmt::format(" to {} at {}", quantity_text(series.points.back().time, "s"),
                                                 plural(series.points.back().ranks, "rank"))};
    figure.curves.push_back(std::move(measured));
    if (const StrongFit* fit = fit_of(fits, series); fit && fit->amdahl.applies) {
      Curve curve{"Amdahl's form", Mark::line, {}, true};
      for (const double ranks : spread_out(low, high))
        curve.points.push_back({ranks, fit->amdahl.time * (fit->amdahl.serial + (1 - fit->amdahl.serial) / ranks)});
      figure.curves.push_back(std::move(curve));
      phrases.push_back(
          fmt::format("Amdahl's serial fraction {}", percent_text({fit->amdahl.serial, fit->amdahl.interval})));
    }
    Curve ideal{"ideal", Mark::line, {}, true};
    for (const double ranks : spread_out(low, high))
      ideal.points.push_back(
          {ranks, series.points.front().time.value * (series.mode == Mode::strong ? low / ranks : 1)});
    figure.curves.push_back(std::move(ideal));
    if (const Projection* projection = projection_of(predictions, series)) {
      Curve model{"model", Mark::line, {}, true};
      const double end = projection->sizes.empty() ? high : projection->sizes.back().ranks;
      for (const double ranks : spread_out(low, end)) model.points.push_back({ranks, projection->at(ranks)});
      figure.curves.push_back(std::move(model));
      Curve next{"predicted", Mark::points, {}};
      for (const Projected& each : projection->sizes) {
        if (!each.time) continue;
        const std::string text = fmt::format("{} at {}", quantity_text(*each.time, "s"), plural(each.ranks, "rank"));
        next.points.push_back({static_cast<double>(each.ranks), each.time->value, each.time->interval, text});
        phrases.push_back("predicted " + text);
      }
      if (!next.points.empty()) figure.curves.push_back(std::move(next));
    }
    figure.alt = sentence(phrases);
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<Figure> collective_pictures(const std::vector<FittedLine>& lines) {
  // Fitted pieces of each series, by world size.
  std::vector<std::pair<const CollectiveSeries*, std::map<int, std::vector<const FittedLine*>>>> all;
  for (const FittedLine& line : lines) {
    if (!line.fit) continue;
    if (all.empty() || all.back().first != line.series) all.push_back({line.series, {}});
    all.back().second[line.line.ranks].push_back(&line);
  }
  std::vector<Figure> figures;
  for (const auto& [series, worlds] : all) {
    if (figures.size() == max_pictures) break;
    Figure figure{fmt::format("scaling-collective-{}", figures.size() + 1),
                  fmt::format("Algorithm bandwidth over message size: {}", series->title),
                  "",
                  {"message", "B", true, {}},
                  {"algbw", "B/s", true, {}},
                  {}};
    std::vector<std::string> phrases;
    for (const auto& [world, pieces] : worlds) {
      if (world != worlds.begin()->first && world != worlds.rbegin()->first) continue;  // five curves at most
      const std::string ranks = plural(world, "rank");
      Curve measured{ranks, Mark::line_and_points, {}}, fit{"fit, " + ranks, Mark::line, {}, true};
      for (const FittedLine* piece : pieces) {
        for (const MessagePoint& point : piece->line.points) {
          const Estimate rate = ratio({point.bytes, Interval{point.bytes, point.bytes}}, point.time);
          measured.points.push_back({point.bytes, rate.value, rate.interval,
                                     fmt::format("{}: {}", format_bytes(point.bytes), quantity_text(rate, "B/s"))});
        }
        for (const double bytes : spread_out(piece->line.points.front().bytes, piece->line.points.back().bytes))
          fit.points.push_back({bytes, bytes / piece->fit->at(bytes)});
        std::string text = fmt::format("{}, {}: ", ranks, sizes_text(piece->line));
        std::vector<std::string> parts;
        if (piece->fit->latency) parts.push_back("latency " + quantity_text(*piece->fit->latency, "s"));
        if (piece->fit->bandwidth) parts.push_back("up to " + quantity_text(*piece->fit->bandwidth, "B/s"));
        if (piece->fit->half_size) parts.push_back("half of it at " + quantity_text(*piece->fit->half_size, "B"));
        if (parts.empty() || piece->fit->rms > worst_rms) parts = {"no line fits"};
        phrases.push_back(fmt::format("{}{}", text, fmt::join(parts, ", ")));
      }
      figure.curves.push_back(std::move(measured));
      figure.curves.push_back(std::move(fit));
    }
    figure.alt = sentence(phrases);
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace assay::report::scaling
