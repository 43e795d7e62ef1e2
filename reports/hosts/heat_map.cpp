// Figures between pairs of hosts: a matrix shaded by slowness.
#include "harness/core/units.h"
#include "harness/statistics/statistics.h"
#include "reports/hosts/hosts.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

namespace assay::report {

namespace {

constexpr std::size_t max_records = 20;
constexpr std::size_t max_in_terminal = 12;  // members of a matrix
constexpr std::size_t max_in_page = 48;
constexpr std::size_t max_pairs = 10;
// Multiples of the median pair's time at which darker shades begin.
constexpr std::array<double, 6> shades{1.03, 1.1, 1.25, 1.5, 2, 4};

struct Pair {
  std::size_t from = 0;
  std::size_t to = 0;
  double value = 0;
};

class Pairs {
 public:
  Pairs(const Record& record) : record_(record), matrix_(*record.matrix) {
    std::set<std::string> distinct;
    for (const int rank : matrix_.ranks) distinct.insert(names_.emplace_back(record.host_of(rank)));
    if (distinct.size() < names_.size() || distinct.contains(""))
      for (std::size_t i = 0; i < names_.size(); ++i) names_[i] = fmt::format("rank {}", matrix_.ranks[i]);
    for (std::size_t a = 0; a < names_.size(); ++a)
      for (std::size_t b = 0; b < names_.size(); ++b)
        if (const double value = matrix_.at(a, b); a != b && std::isfinite(value) && value > 0)
          pairs_.push_back({a, b, value});
    std::ranges::stable_sort(pairs_, [&](const Pair& a, const Pair& b) { return worse(a.value, b.value); });
    std::vector<double> values;
    for (const Pair& pair : pairs_) values.push_back(pair.value);
    if (!values.empty()) middle_ = median(values);
  }
  bool empty() const { return pairs_.empty(); }
  std::size_t members() const { return names_.size(); }

  // What the matrix shows, and which host or link is slow.
  std::vector<Block> words() const {
    const Pair& slowest = pairs_.front();
    std::vector<Block> blocks{
        Text{fmt::format("{}: {} between {} {}. Slowest: {} to {}, {}; median {}.", case_title(record_), matrix_.metric,
                         members(), names_.front().starts_with("rank ") ? "ranks" : "hosts", names_[slowest.from],
                         names_[slowest.to], text(slowest.value), text(middle_))}};
    bool named = false;
    for (const std::string& flag : record_.flags) {
      if (!flag.starts_with("slow ") && !flag.starts_with("slow:")) continue;
      blocks.push_back(Text{flag, Tone::warn});
      named = true;
    }
    if (!named)
      blocks.push_back(members() < 3
                           ? Text{"With only two members there is no other link to compare with.", Tone::faint}
                           : Text{"No host or link stands out.", Tone::good});
    return blocks;
  }

  Table slowest() const {
    Table table{"slowest_pairs",
                "The slowest pairs",
                {{"from"}, {"to"}, right("value", matrix_.metric), right("times", "of the median")},
                {}};
    for (std::size_t i = 0; i < std::min(pairs_.size(), max_pairs); ++i) {
      const Pair& pair = pairs_[i];
      const double share = pair.value / middle_;
      table.rows.push_back({{names_[pair.from], nullptr},
                            {names_[pair.to], nullptr},
                            {text(pair.value), {{"value", pair.value}, {"unit", matrix_.unit}}},
                            {format_percent(share), share}});
    }
    return table;
  }

  // All members, or those with the slowest links.
  Table table() const {
    const std::vector<std::size_t> shown = chosen();
    const DisplayUnit unit = display_unit(middle_, matrix_.unit);
    Table table{"pairs",
                fmt::format("{}, {}, from row to column{}", matrix_.metric, unit.name, left_out(shown)),
                {{"from"}},
                {}};
    for (const std::size_t to : shown) table.columns.push_back(right("to_" + names_[to], names_[to]));
    for (const std::size_t from : shown) {
      std::vector<Cell> row{{names_[from], nullptr}};
      for (const std::size_t to : shown) row.push_back(from == to ? no_cell() : cell(matrix_.at(from, to), unit));
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  // The port of each host on each rail: its median link. Without rows if the record has no rails.
  Table rails() const {
    const DisplayUnit unit = display_unit(middle_, matrix_.unit);
    const std::vector<std::size_t> shown = chosen();
    Table table{"rails",
                fmt::format("{}, {}: the median link of each host on each rail, in its slower direction{}",
                            matrix_.metric, unit.name, left_out(shown)),
                {{"host"}},
                {}};
    for (std::size_t rail = 0; rail < record_.rails.size(); ++rail)
      table.columns.push_back(right(fmt::format("rail_{}", rail), fmt::format("rail {}", rail)));
    for (std::size_t host = 0; host < shown.size() && !record_.rails.empty(); ++host) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.push_back({names_[shown[host]], nullptr});
      for (const Matrix& rail : record_.rails) row.push_back(cell(median_link(rail, names_[shown[host]]), unit));
    }
    return table;
  }

 private:
  std::string left_out(const std::vector<std::size_t>& shown) const {
    if (shown.size() == members()) return {};
    return fmt::format("; the {} of {} with the slowest links", shown.size(), members());
  }

  // NaN if the host has none on this rail.
  double median_link(const Matrix& rail, const std::string& host) const {
    std::vector<double> links;
    for (std::size_t a = 0; a < rail.ranks.size(); ++a) {
      if (record_.host_of(rail.ranks[a]) != host) continue;
      for (std::size_t b = 0; b < rail.ranks.size(); ++b) {
        const double there = rail.at(a, b), back = rail.at(b, a), value = worse(there, back) ? there : back;
        if (a != b && std::isfinite(value)) links.push_back(value);
      }
    }
    return links.empty() ? std::nan("") : median(links);
  }

  bool worse(double a, double b) const { return matrix_.better == Better::higher ? a < b : a > b; }
  std::string text(double value) const { return format_quantity(value, matrix_.unit); }

  // The members of the slowest pairs, in matrix order.
  std::vector<std::size_t> chosen() const {
    std::set<std::size_t> chosen;
    for (const Pair& pair : pairs_) {
      for (const std::size_t member : {pair.from, pair.to})
        if (chosen.size() < max_in_page) chosen.insert(member);
      if (chosen.size() >= max_in_page) break;
    }
    return {chosen.begin(), chosen.end()};
  }

  Cell cell(double value, const DisplayUnit& unit) const {
    if (!std::isfinite(value)) return no_cell();
    const double shown = value / unit.scale;
    Cell cell{fmt::format("{:.{}f}", shown, shown < 10 ? 2 : shown < 100 ? 1 : 0), value};
    cell.sort = value;
    const double times = matrix_.better == Better::higher ? middle_ / value : value / middle_;
    cell.heat = static_cast<int>(std::ranges::upper_bound(shades, times) - shades.begin());
    return cell;
  }

  const Record& record_;
  const Matrix& matrix_;
  std::vector<std::string> names_;
  std::vector<Pair> pairs_;  // the slowest first
  double middle_ = 0;
};

}  // namespace

std::vector<Table> link_tables(const Record& record) {
  const Pairs pairs(record);
  if (pairs.empty()) return {};
  std::vector<Table> tables = {pairs.rails(), pairs.table()};
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::vector<Section> pair_sections(const RunSet& runs) {
  Section section{"pairs", "Pair by pair", {}}, large{"pair-matrices", "Every pair", {}, false};
  std::size_t shown = 0, left_out = 0;
  for (const Entry& entry : runs.entries()) {
    if (!entry.record->matrix) continue;
    const Pairs pairs(*entry.record);
    if (pairs.empty()) continue;
    if (++shown > max_records) {
      ++left_out;
      continue;
    }
    std::vector<Block> words = pairs.words();
    std::move(words.begin(), words.end(), std::back_inserter(section.blocks));
    const bool small = pairs.members() <= max_in_terminal;
    if (!small) {
      section.blocks.push_back(pairs.slowest());
      large.blocks.push_back(Text{case_title(*entry.record)});
    }
    for (Table& table : link_tables(*entry.record)) (small ? section : large).blocks.push_back(std::move(table));
  }
  if (section.blocks.empty()) return {};
  section.blocks.push_back(
      Text{"Redder cells are slower than the median pair: shades begin at 3 %, 10 %, 25 % and 50 % more time, and at 2 "
           "and 4 times its time.",
           Tone::faint});
  if (left_out > 0)
    section.blocks.push_back(
        Text{plural(left_out, "more matrix record") + " not shown: pass fewer directories to see them.", Tone::warn});
  std::vector<Section> sections;
  sections.push_back(std::move(section));
  if (!large.blocks.empty()) sections.push_back(std::move(large));
  return sections;
}

}  // namespace assay::report
