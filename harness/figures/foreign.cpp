#include "harness/figures/foreign.h"

#include "harness/core/error.h"
#include "harness/core/moment.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

// Python and Google Benchmark write NaN and Infinity, which JSON does not have.
std::string without_nan(std::string_view text) {
  constexpr std::array<std::string_view, 7> words = {"NaN", "-NaN", "nan", "-nan", "Infinity", "-Infinity", "inf"};
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto word =
        quoted ? words.end()
               : std::ranges::find_if(words, [&](std::string_view one) { return text.substr(i).starts_with(one); });
    if (word != words.end()) {
      out += "null";
      i += word->size() - 1;
      continue;
    }
    out += text[i];
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
  }
  return out;
}

}  // namespace

Json parse_printed_json(const std::string& text) {
  try {
    return parse_untrusted(text);
  } catch (const Error&) {
    return parse_untrusted(without_nan(text));
  }
}

Json parse_foreign_json(const std::string& text, const std::string& file) {
  try {
    return parse_printed_json(text);
  } catch (const Error&) {
    return parse_json(without_nan(text), file + ": not JSON");  // names line and column
  }
}

const Json& need_list(const Json& json, const char* pointer, const std::string& file, const char* tool) {
  const Json& list = member(json, pointer);
  if (!list.is_array()) throw UsageError(fmt::format("{}: not {}'s JSON: it has no list {}", file, tool, pointer));
  return list;
}

bool FigureCollector::empty() const {
  return std::ranges::all_of(file_.runs, [](const ForeignRun& run) { return run.empty(); });
}

ForeignRun& FigureCollector::run() {
  if (!current_) measured({});
  return file_.runs[*current_];
}

void FigureCollector::measured(const ForeignContext& about) {
  const auto [place, fresh] = places_.try_emplace(about.text(), file_.runs.size());
  if (fresh) file_.runs.emplace_back().about = about;
  current_ = place->second;
}

void FigureCollector::add(ForeignFigure result) { run().add(std::move(result), file_.texts); }

void FigureCollector::add(ForeignFigure result, double value) {
  if (std::isfinite(value)) {
    result.values = {value};
  } else if (result.status < Status::error) {
    result.status = Status::error;
    result.reason = result.metric + " is not finite";
  }
  add(std::move(result));
}

void FigureCollector::add_without(ForeignFigure result, Status status, std::string reason) {
  result.metric.clear(), result.unit.clear(), result.values.clear();
  result.status = status;
  result.reason = std::move(reason);
  add(std::move(result));
}

void FigureCollector::not_read(const std::string& place, const std::string& what) {
  if (file_.not_read++ == 0) file_.first_not_read = fmt::format("{}: {}", place, one_line(what));
}

void FigureCollector::remark(const std::string& text) {
  if (std::ranges::find(file_.remarks, text) == file_.remarks.end()) file_.remarks.push_back(text);
}

std::string FigureCollector::time(const std::string& written, const std::string& text, const std::string& file) {
  if (written.empty() || read_moment(written)) return time(written, file);
  const std::size_t at = std::min(text.find(in_quotes(written, written.size())), text.size());
  const auto begin = text.begin();
  return time(written,
              fmt::format("{}: line {}", file, 1 + std::count(begin, begin + static_cast<std::ptrdiff_t>(at), '\n')));
}

std::string FigureCollector::time(const std::string& written, const std::string& place) {
  if (written.empty() || written == last_time_.first) return written.empty() ? written : last_time_.second;
  const auto moment = read_moment(written);
  if (!moment)
    throw UsageError(
        fmt::format("{}: the time {} cannot be read: use 2026-01-31T12:00:00Z", place, in_quotes(written)));
  if (!moment->zone) remark("its times have no zone and are taken as UTC");
  last_time_ = {written, moment->utc};
  return moment->utc;
}

Better better_from(const std::string& word, const std::string& place) {
  if (const auto better = from_word<Better>(word)) return *better;
  throw UsageError(fmt::format("{}: better is {}: use higher or lower", place, in_quotes(word)));
}

}  // namespace assay
