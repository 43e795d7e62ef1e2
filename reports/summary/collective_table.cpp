#include "reports/summary/collective_table.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"

#include <fmt/core.h>

#include <cstdlib>
#include <tuple>

namespace assay::report {

namespace {

// The figures of one record: half a row.
struct Half {
  std::optional<double> seconds;
  std::optional<double> algbw;
  std::optional<double> busbw;
  std::optional<double> wrong;
};

struct CollectiveRow {
  std::string count, redop, root;
  std::optional<Half> out_of_place, in_place;
};

using TableKey = std::tuple<std::string, int, std::string>;  // op, ranks, batching and variant
using RowKey = std::pair<std::string, std::uint64_t>;        // dtype, size in bytes

struct CollectiveTable {
  std::string implementation;
  std::map<RowKey, CollectiveRow> rows;
};

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::string() : scalar_text(*found);
}

std::string label_of(const Record& record, const char* name) { return record.attribute(name).value_or(""); }

Half half_of(const Record& record) {
  Half half;
  for (const Metric& metric : record.metrics) {
    if (metric.name == "latency") half.seconds = metric.value;
    if (metric.name == "algbw") half.algbw = metric.value;
    if (metric.name == "busbw") half.busbw = metric.value;
  }
  for (const Check& check : record.checks)
    if (check.name == "wrong_elements") half.wrong = check.value;
  return half;
}

// nccl-tests' names of the types.
std::string type_of(const std::string& dtype) {
  static const std::map<std::string, std::string> names{{"f64", "double"},    {"f32", "float"}, {"fp16", "half"},
                                                        {"bf16", "bfloat16"}, {"i64", "int64"}, {"i32", "int32"},
                                                        {"s8", "int8"},       {"u8", "uint8"}};
  const auto found = names.find(dtype);
  return found == names.end() ? dtype : found->second;
}

// Seven characters, with fewer decimals for larger numbers.
std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:7.{}f}", us, us < 9999.995 ? 2 : us < 99999.95 ? 1 : 0);
}

std::string gigabytes(const std::optional<double>& rate) {
  return rate ? fmt::format("{:6.2f}", *rate * 1e-9) : fmt::format("{:>6}", "N/A");
}

std::string print(const std::optional<Half>& half) {
  const Half h = half.value_or(Half{});
  return fmt::format("  {:>7}  {}  {}  {:>5}", h.seconds ? microseconds(*h.seconds) : "N/A", gigabytes(h.algbw),
                     gigabytes(h.busbw), h.wrong ? fmt::format("{:.0f}", *h.wrong) : "N/A");
}

std::string print(const TableKey& key, const CollectiveTable& table) {
  const auto& [op, ranks, way] = key;
  std::string text = fmt::format("# {}, {}, {}{}{}\n", op, plural(ranks, "rank"), way,
                                 table.implementation.empty() ? "" : ", ", table.implementation);
  const std::string columns = fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", "time", "algbw", "busbw", "#wrong");
  const std::string units = fmt::format("  {:>7}  {:>6}  {:>6}  {:>5}", "(us)", "(GB/s)", "(GB/s)", "");
  const auto heading = [&](std::array<const char*, 5> left, const std::string& half) {
    std::string line = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}", left[0], left[1], left[2], left[3],
                                   left[4], half, half);
    text += line.erase(line.find_last_not_of(' ') + 1) + '\n';
  };
  text += fmt::format("#{:>67}{:>{}}\n", "out-of-place", "in-place", columns.size());
  heading({"size", "count", "type", "redop", "root"}, columns);
  heading({"(B)", "(elements)", "", "", ""}, units);

  double wrong = 0, bus = 0;
  int measured = 0;
  for (const auto& [row_key, row] : table.rows) {
    text += fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", row_key.second, row.count, type_of(row_key.first),
                        row.redop, row.root, print(row.out_of_place), print(row.in_place));
    for (const auto* half : {&row.out_of_place, &row.in_place}) {
      if (!*half) continue;
      wrong += (*half)->wrong.value_or(0);
      if ((*half)->busbw) bus += *(*half)->busbw * 1e-9, ++measured;
    }
  }
  text += fmt::format("# Out of bounds values : {:.0f} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  if (measured) text += fmt::format("# Avg bus bandwidth    : {:.6g}\n", bus / measured);
  return text;
}

}  // namespace

std::string collective_table(std::span<const Record* const> records) {
  std::map<TableKey, CollectiveTable> tables;
  for (const Record* at : records) {
    const Record& record = *at;
    if (record.family != "collective" || record.metrics.empty() || !record.params.is_object()) continue;
    if (record.matrix || !record.groups.empty()) continue;  // figures of parts of the world
    const std::string variant = collective_variant(record);
    const std::string way = text_of(record.params, "batching") + (variant.empty() ? "" : ", " + variant);
    CollectiveTable& table = tables[{text_of(record.params, "op"), record.world_ranks, way}];
    table.implementation = label_of(record, "implementation");
    std::string size = label_of(record, "bytes_used");
    if (size.empty()) size = text_of(record.params, "bytes");
    CollectiveRow& row = table.rows[{text_of(record.params, "dtype"), std::strtoull(size.c_str(), nullptr, 10)}];
    row.count = label_of(record, "count");
    row.redop = label_of(record, "redop");
    row.root = label_of(record, "root");
    (text_of(record.params, "inplace") == "true" ? row.in_place : row.out_of_place) = half_of(record);
  }
  std::string text;
  for (const auto& [key, table] : tables) text += (text.empty() ? "" : "\n") + print(key, table);
  return text;
}

}  // namespace assay::report
