#include "harness/figures/foreign_run.h"

#include "harness/json/json.h"
#include "harness/record/content_hash.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace assay {

namespace {

constexpr std::uint32_t lower_flag = 1, guessed_flag = 2, more_flag = 4;

void append(std::string& key, std::string_view part) {
  key += std::to_string(part.size());
  key.append(1, ':').append(part);
}

// Equal for results that are samples of one figure.
std::string key_of(const ForeignFigure& figure) {
  std::string key(1, figure.better == Better::lower ? '-' : '+');
  append(key, figure.metric), append(key, figure.unit);
  return key;
}

// Equal for results of one case, of the same name.
std::string case_key(const ForeignFigure& figure) {
  std::string key(sizeof(void*), '\0');
  const void* world = figure.world.get();
  std::memcpy(key.data(), &world, sizeof world);
  for (const auto& [name, value] : figure.conditions) append(key, name), append(key, value);
  return key;
}

void join(ForeignFigure& to, const ForeignFigure& from) {
  to.ci95.reset();  // of several values together it is not known
  to.values.insert(to.values.end(), from.values.begin(), from.values.end());
  to.comparable &= from.comparable;
  to.labels.insert(from.labels.begin(), from.labels.end());
  if (from.status > to.status) to.status = from.status, to.reason = from.reason;
  if (from.check && (!to.check || to.check->value < from.check->value)) to.check = from.check;
}

}  // namespace

std::string ForeignContext::text() const {
  std::string key = std::to_string(part);
  append(key, time), append(key, machine), append(key, commit);
  for (const auto& [name, value] : facts) append(key, name), append(key, value);
  if (!environment.is_null()) key += dump_line(environment.get());
  return key;
}

std::string_view TextPool::text(std::uint32_t id) const {
  const std::uint64_t begin = id == 0 ? 0 : ends_[id - 1];
  return std::string_view(bytes_).substr(begin, ends_[id] - begin);
}

void TextPool::grow() {
  constexpr std::size_t first = 64;
  slots_.assign(std::max(first, 2 * slots_.size()), 0);
  for (std::uint32_t id = 0; id < ends_.size(); ++id) {
    std::size_t slot = hash64(text(id)) & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = id + 1;
  }
}

std::uint32_t TextPool::id(std::string_view wanted) {
  if (3 * (ends_.size() + 1) > 2 * slots_.size()) grow();
  std::size_t slot = hash64(wanted) & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1))
    if (text(slots_[slot] - 1) == wanted) return slots_[slot] - 1;
  bytes_ += wanted;
  ends_.push_back(bytes_.size());
  slots_[slot] = static_cast<std::uint32_t>(ends_.size());
  return slots_[slot] - 1;
}

void ForeignRun::add(ForeignFigure&& result, TextPool& texts) {
  const bool plain = result.values.size() == 1 && result.status == Status::ok && !result.check && result.comparable &&
                     result.conditions.empty() && result.labels.empty();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  Row row{texts.id(result.name), 0, 0, 0, 0, none, none, none};
  if (!plain) {
    row.metric = static_cast<std::uint32_t>(more_.size());
    row.flags = more_flag;
    more_.push_back(std::move(result));
  } else {
    row.metric = texts.id(result.metric), row.unit = texts.id(result.unit);
    if (worlds_.back() != result.world && result.world) worlds_.push_back(result.world);
    if (result.world) row.world = static_cast<std::uint32_t>(worlds_.size() - 1);
    row.flags = (result.better == Better::lower ? lower_flag : 0u) | (result.guessed ? guessed_flag : 0u);
    row.value = result.values.front();
    if (result.ci95) row.low = result.ci95->low, row.high = result.ci95->high;
  }
  rows_.push_back(row);
}

ForeignFigure ForeignRun::figure(const Row& row, const TextPool& texts) const {
  if (row.flags & more_flag) return more_[row.metric];
  ForeignFigure figure;
  figure.name = texts.text(row.name), figure.metric = texts.text(row.metric), figure.unit = texts.text(row.unit);
  figure.better = row.flags & lower_flag ? Better::lower : Better::higher;
  figure.guessed = (row.flags & guessed_flag) != 0;
  figure.values = {row.value};
  figure.world = worlds_[row.world];
  if (!std::isnan(row.low)) figure.ci95 = Interval{row.low, row.high};
  return figure;
}

void ForeignRun::each_direction(
    const TextPool& texts,
    const std::function<void(std::string_view name, std::string_view metric, Better& better, bool& guessed)>& look) {
  for (Row& row : rows_) {
    if (row.flags & more_flag) {
      ForeignFigure& one = more_[row.metric];
      if (!one.metric.empty()) look(one.name, one.metric, one.better, one.guessed);
      continue;
    }
    Better better = row.flags & lower_flag ? Better::lower : Better::higher;
    bool guessed = (row.flags & guessed_flag) != 0;
    look(texts.text(row.name), texts.text(row.metric), better, guessed);
    row.flags = (better == Better::lower ? lower_flag : 0u) | (guessed ? guessed_flag : 0u);
  }
}

void ForeignRun::each_case(const TextPool& texts,
                           const std::function<void(const std::vector<ForeignFigure>&)>& use) const {
  std::vector<std::uint32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(rows_[a].name, a) < std::pair(rows_[b].name, b);
  });
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::vector<std::vector<ForeignFigure>> cases;
    std::unordered_map<std::string, std::size_t> by_case, by_figure;
    for (; end < order.size() && rows_[order[end]].name == rows_[order[begin]].name; ++end) {
      ForeignFigure one = figure(rows_[order[end]], texts);
      const std::string key = case_key(one);
      const auto [place, fresh] = by_case.try_emplace(key, cases.size());
      if (fresh) cases.emplace_back();
      std::vector<ForeignFigure>& figures = cases[place->second];
      const auto [known, first] = by_figure.try_emplace(key + key_of(one), figures.size());
      if (first)
        figures.push_back(std::move(one));
      else
        join(figures[known->second], one);
    }
    for (const auto& figures : cases) use(figures);
  }
}

std::vector<ForeignFigure> ForeignFile::figures() const {
  std::vector<ForeignFigure> all;
  for (const ForeignRun& run : runs)
    run.each_case(texts,
                  [&](const std::vector<ForeignFigure>& some) { all.insert(all.end(), some.begin(), some.end()); });
  return all;
}

}  // namespace assay
