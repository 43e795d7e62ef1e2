// Finds the series, fits them once, and lays out tables and pictures in sections.
#include "reports/scaling/scaling.h"
#include "reports/model/words.h"

#include "reports/scaling/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace assay::report {

namespace {

using namespace scaling;

constexpr std::size_t max_terminal_rows = 40;  // a longer front page is only in files

struct Fits {
  std::vector<StrongFit> amdahl;
  std::vector<SeriesPrediction> predictions;
  std::vector<FittedLine> lines;
  std::vector<FittedForms> forms;
};

// Lines of each world size, in pieces if a single one does not fit; then forms over the world sizes, piece by piece if
// all have equally many: no form spans a change of algorithm.
void fit_collective(const CollectiveSeries& series, Fits& fits) {
  std::vector<std::vector<MessageLine>> pieces;  // of each world size
  for (const MessageLine& line : series.lines) pieces.push_back(split_by_size(line));
  for (const auto& of_world : pieces)
    for (const MessageLine& piece : of_world)
      fits.lines.push_back({&series, piece, of_world.size() == 1, fit_line(piece)});
  const std::size_t count = pieces.front().size();
  if (std::ranges::any_of(pieces, [&](const auto& each) { return each.size() != count; })) return;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<MessageLine> lines;
    bool enough = false;  // one size per world size fits no message line, however many world sizes there are
    MessageLine all;
    for (const auto& of_world : pieces) {
      lines.push_back(of_world[i]);
      all.points.insert(all.points.end(), of_world[i].points.begin(), of_world[i].points.end());
      enough = enough || static_cast<int>(of_world[i].points.size()) >= min_sizes;
    }
    if (!enough) continue;
    std::ranges::sort(all.points, {}, &MessagePoint::bytes);
    fits.forms.push_back({&series, sizes_text(all), fit_forms(series.op, lines)});
  }
}

Fits fit_all(const SeriesSet& training, const CollectiveSet& collectives) {
  Fits fits;
  for (const Series& series : training.series) {
    if (const auto amdahl = fit_amdahl(series)) fits.amdahl.push_back({&series, *amdahl});
    const int largest = series.points.back().ranks;
    std::vector<int> next;
    for (const int factor : {2, 4})
      if (largest <= std::numeric_limits<int>::max() / factor) next.push_back(factor * largest);
    if (auto projection = project(series, next)) fits.predictions.push_back({&series, std::move(*projection)});
  }
  for (const CollectiveSeries& series : collectives.series) fit_collective(series, fits);
  return fits;
}

// Why some efficiencies have no interval.
std::vector<Text> interval_text(const std::vector<Series>& all) {
  for (const Series& series : all)
    for (const WorldPoint& point : series.points)
      if (!point.time.interval)
        return {{"No interval (–): the run's samples are too few or too correlated; use several runs", Tone::faint}};
  return {};
}

class Layout {
 public:
  Layout(std::string id, std::string title) : section_{std::move(id), std::move(title), {}, true} {}

  void add(std::optional<Table> table) {
    if (!table) return;
    rows_ += table->rows.size();
    section_.blocks.emplace_back(std::move(*table));
  }
  void add(std::vector<Text> texts) {
    for (Text& text : texts) section_.blocks.emplace_back(std::move(text));
  }
  void add(std::vector<Figure> figures) {
    for (Figure& figure : figures) section_.blocks.emplace_back(std::move(figure));
  }
  std::size_t rows() const { return rows_; }
  void finish(bool in_terminal, std::vector<Section>& sections) {
    section_.in_terminal = in_terminal;
    if (!section_.blocks.empty()) sections.push_back(std::move(section_));
  }

 private:
  Section section_;
  std::size_t rows_ = 0;
};

// The worst straggler.
std::vector<Text> straggler_text(const std::vector<RankSpread>& spreads) {
  if (spreads.empty() || spreads.front().spread <= straggling) return {};
  const RankSpread& worst = spreads.front();
  const std::string host = worst.host.empty() ? "" : " on " + worst.host;
  return {{fmt::format("Slowest rank: {}{}, {:.1f} % behind the fastest ({})", worst.slowest_rank, host,
                       100 * worst.spread, worst.title),
           Tone::warn}};
}

// The first records that were left out; the table has all.
std::vector<Text> excluded_texts(const std::vector<Excluded>& excluded) {
  constexpr std::size_t max_texts = 3;
  std::vector<Text> texts;
  std::size_t more = 0;
  for (const Excluded& each : excluded) {
    if (each.minor) continue;
    if (texts.size() == max_texts) {
      ++more;
      continue;
    }
    texts.push_back(
        {fmt::format("Left out: {}, {}: {}", each.title,
                     each.ranks.size() == 1 ? plural(each.ranks.front(), "rank") : joined(each.ranks) + " ranks",
                     each.reason),
         Tone::warn});
  }
  if (more > 0) texts.push_back({fmt::format("Left out: {} more, listed in the report's files", more), Tone::warn});
  return texts;
}

}  // namespace

std::vector<Section> scaling_sections(const RunSet& runs) {
  const Likenesses likenesses(runs);
  const SeriesSet training = find_series(runs, likenesses);
  const CollectiveSet collectives = find_collectives(runs, likenesses);
  const Fits fits = fit_all(training, collectives);
  const std::vector<RankSpread> spreads = rank_spreads(runs, likenesses);
  std::vector<Excluded> excluded = training.excluded;
  excluded.insert(excluded.end(), collectives.excluded.begin(), collectives.excluded.end());

  std::vector<Section> sections;
  Layout front("scaling", "Scaling");
  front.add(efficiency_table(training.series, Mode::strong));
  front.add(efficiency_table(training.series, Mode::weak));
  front.add(prediction_table(fits.predictions));
  front.add(message_table(fits.lines));
  front.add(interval_text(training.series));
  front.add(straggler_text(spreads));
  front.add(lone_texts(training.lone));
  front.add(excluded_texts(excluded));
  front.add(efficiency_pictures(training.series, Mode::strong));
  front.add(efficiency_pictures(training.series, Mode::weak));
  front.add(time_pictures(training.series, fits.amdahl, fits.predictions));
  front.add(collective_pictures(fits.lines));
  const bool fits_terminal = front.rows() <= max_terminal_rows;
  const std::size_t rows = front.rows();
  front.finish(fits_terminal, sections);
  if (!fits_terminal) {
    Layout note("scaling-note", "Scaling");
    note.add(std::vector<Text>{{fmt::format("{} rows on scaling are in the report's files", rows), Tone::plain}});
    note.add(straggler_text(spreads));
    note.finish(true, sections);
  }

  Layout details("scaling-details", "Scaling: fits and ranks");
  details.add(amdahl_table(fits.amdahl));
  details.add(model_table(fits.predictions));
  details.add(line_table(fits.lines));
  details.add(missing_texts(fits.lines));
  details.add(form_table(fits.forms));
  details.add(residual_table(fits.lines, fits.amdahl));
  details.add(rank_table(spreads));
  details.add(excluded_table(excluded));
  details.finish(false, sections);
  return sections;
}

}  // namespace assay::report
