// Finds the series, fits them once, and lays the tables and pictures out in sections.
#include "reports/scaling/scaling.h"

#include "reports/scaling/cells.h"
#include "reports/scaling/efficiency_tables.h"
#include "reports/scaling/fit_tables.h"
#include "reports/scaling/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace assay::report {

namespace {

using namespace scaling;

constexpr std::size_t most_terminal_rows = 40;  // a longer front page stays in files

struct Fits {
  std::vector<StrongFit> amdahl;
  std::vector<SeriesPrediction> predictions;
  std::vector<FittedLine> lines;
  std::vector<FittedForms> forms;
};

Fits fit_all(const SeriesSet& training, const CollectiveSet& collectives) {
  Fits fits;
  for (const Series& series : training.series) {
    if (const auto amdahl = fit_amdahl(series)) fits.amdahl.push_back({&series, *amdahl});
    if (const auto prediction = predict(series)) fits.predictions.push_back({&series, *prediction});
  }
  for (const CollectiveSeries& series : collectives.series) {
    for (const MessageLine& line : series.lines) fits.lines.push_back({&series, &line, fit_line(line)});
    // One size a world size is no fit of messages, however many world sizes there are.
    const bool sizes = std::any_of(series.lines.begin(), series.lines.end(), [](const MessageLine& line) {
      return static_cast<int>(line.points.size()) >= fewest_sizes;
    });
    if (sizes) fits.forms.push_back({&series, fit_forms(series)});
  }
  return fits;
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

// The one straggler that matters most, in a line.
std::vector<Text> straggler_text(const std::vector<RankSpread>& spreads) {
  if (spreads.empty() || spreads.front().spread <= straggling) return {};
  const RankSpread& worst = spreads.front();
  const std::string host = worst.host.empty() ? "" : " on " + worst.host;
  return {{fmt::format("Slowest rank: {}{}, {:.1f} % behind the fastest ({})", worst.slowest_rank, host,
                       100 * worst.spread, worst.title),
           Tone::warn}};
}

// The first of what was kept apart; the table holds all.
std::vector<Text> apart_texts(const std::vector<Apart>& apart) {
  constexpr std::size_t most = 3;
  std::vector<Text> texts;
  for (const Apart& each : apart) {
    if (texts.size() == most) break;
    texts.push_back({fmt::format("Kept apart: {}, {}: {}", each.title,
                                 each.ranks.size() == 1 ? ranks_text(each.ranks.front())
                                                        : fmt::format("{} ranks", fmt::join(each.ranks, ", ")),
                                 each.reason),
                     Tone::warn});
  }
  if (apart.size() > most)
    texts.push_back({fmt::format("Kept apart: {} more, in the report's files", apart.size() - most), Tone::warn});
  return texts;
}

}  // namespace

std::vector<Section> scaling_sections(const RunSet& runs) {
  const Likenesses likenesses(runs);
  const SeriesSet training = find_series(runs, likenesses);
  const CollectiveSet collectives = find_collectives(runs, likenesses);
  const Fits fits = fit_all(training, collectives);
  const std::vector<RankSpread> spreads = rank_spreads(runs, likenesses);
  std::vector<Apart> apart = training.apart;
  apart.insert(apart.end(), collectives.apart.begin(), collectives.apart.end());

  std::vector<Section> sections;
  Layout front("scaling", "Scaling");
  front.add(efficiency_table(training.series, Mode::strong));
  front.add(efficiency_table(training.series, Mode::weak));
  front.add(prediction_table(fits.predictions));
  front.add(message_table(fits.lines));
  front.add(straggler_text(spreads));
  front.add(lone_texts(training.lone));
  front.add(missing_texts(fits.lines));
  front.add(apart_texts(apart));
  front.add(efficiency_pictures(training.series, Mode::strong));
  front.add(efficiency_pictures(training.series, Mode::weak));
  front.add(time_pictures(training.series, fits.amdahl, fits.predictions));
  front.add(collective_pictures(fits.lines));
  const bool fits_terminal = front.rows() <= most_terminal_rows;
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
  details.add(form_table(fits.forms));
  details.add(residual_table(fits.lines, fits.amdahl));
  details.add(rank_table(spreads));
  details.add(apart_table(apart));
  details.finish(false, sections);
  return sections;
}

}  // namespace assay::report
