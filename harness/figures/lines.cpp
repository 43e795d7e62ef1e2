// Figures as lines of four words, which people write by hand: every mistake is named with its place.
#include <utility>
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/mentions.h"
#include "harness/figures/quantity.h"

#include <sstream>

namespace assay {

namespace {

// Text whose lines end in carriage returns alone would lose all but its last.
void refuse_overwritten(const std::string& line, const std::string& place) {
  const std::size_t last = line.find_last_not_of('\r');
  const std::size_t end = last == line.npos ? line.npos : line.rfind('\r', last);
  if (end == line.npos) return;
  std::istringstream parts(line.substr(0, end));
  for (std::string part; std::getline(parts, part, '\r');)
    if (part.ends_with(" higher") || part.ends_with(" lower"))
      throw UsageError(fmt::format("{}: a carriage return overwrites {}", place, in_quotes(part)));
}

}  // namespace

ForeignFile read_lines(const std::string& text, const std::string& file) {
  FigureCollector figures;
  std::istringstream written(text);
  int number = 0;
  for (std::string line; std::getline(written, line);) {
    ++number;
    const std::string place = fmt::format("{}: line {}", file, number);
    refuse_overwritten(line, place);
    std::istringstream words(visible_text(line));
    std::string value, unit, better, more;
    ForeignFigure figure;
    if (!(words >> figure.name) || figure.name.front() == '#') continue;
    words >> value;
    if (const auto status = from_word<Status>(value); status && status != Status::ok) {
      std::getline(words >> std::ws, more);
      figures.add_without(figure, *status, more);
      continue;
    }
    if (!(words >> unit >> better) || words >> more)
      throw UsageError(place + ": is neither \"name value unit better\" nor \"name failed|error|skipped reason\"");
    figure.metric = "value";
    figure.unit = unit;
    figure.better = better_from(better, place);
    const auto read = number_from(value);
    if (!read) throw UsageError(fmt::format("{}: value: {} is not a number", place, in_quotes(value)));
    figures.add(std::move(figure), *read);
  }
  return figures.take();
}

}  // namespace assay
