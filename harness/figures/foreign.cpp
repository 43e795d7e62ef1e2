#include "harness/figures/foreign.h"

#include "harness/core/error.h"
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
    const auto word = quoted ? words.end() : std::find_if(words.begin(), words.end(), [&](std::string_view one) {
      return text.substr(i).starts_with(one);
    });
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

ForeignFigure& FigureCollector::add(const ForeignFigure& result) {
  std::string key;
  for (const std::string* part :
       {&result.time, &result.machine, &result.commit, &result.name, &result.metric, &result.unit})
    key.append(*part).append(1, '\0');
  for (const auto& [name, value] : result.facts) key.append(name).append(1, '\0').append(value).append(1, '\0');
  key += word_of(result.better);
  const auto [place, fresh] = places_.try_emplace(std::move(key), file_.figures.size());
  if (fresh) {
    file_.figures.push_back(result);
    return file_.figures.back();
  }
  ForeignFigure& figure = file_.figures[place->second];
  figure.values.insert(figure.values.end(), result.values.begin(), result.values.end());
  figure.comparable &= result.comparable;
  if (result.status > figure.status) figure.status = result.status, figure.reason = result.reason;
  if (result.check && (!figure.check || figure.check->value < result.check->value)) figure.check = result.check;
  return figure;
}

ForeignFigure& FigureCollector::add(ForeignFigure result, double value) {
  if (std::isfinite(value)) {
    result.values = {value};
  } else if (result.status < Status::error) {
    result.status = Status::error;
    result.reason = result.metric + " is not finite";
  }
  return add(result);
}

void FigureCollector::add_without(ForeignFigure result, Status status, std::string reason) {
  result.metric.clear(), result.unit.clear(), result.values.clear();
  result.status = status;
  result.reason = std::move(reason);
  add(result);
}

void FigureCollector::not_read(const std::string& place, const std::string& what) {
  if (file_.not_read++ == 0) file_.first_not_read = fmt::format("{}: {}", place, one_line(what));
}

Better better_from(const std::string& word, const std::string& place) {
  if (const auto better = from_word<Better>(word)) return *better;
  throw UsageError(fmt::format("{}: better is {}: use higher or lower", place, in_quotes(word)));
}

}  // namespace assay
