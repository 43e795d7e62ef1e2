#include "reports/cost/catalogue.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/runs/csv.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace assay::report {

namespace {

// All columns that a user's table may have: those read here, and those of catalogues.
const std::vector<std::string> known = {"InstanceType",
                                        "Price",
                                        "Source",
                                        "Date",
                                        "SpotPrice",
                                        "Region",
                                        "AvailabilityZone",
                                        "AcceleratorName",
                                        "AcceleratorCount",
                                        "Provider",
                                        "Currency",
                                        "vCPUs",
                                        "MemoryGiB",
                                        "GpuInfo",
                                        "Arch",
                                        "Generation"};

// Columns of the header by name.
class Columns {
 public:
  Columns(const CsvRow& header, Problems& problems) {
    for (std::size_t i = 0; i < header.fields.size(); ++i) {
      const std::string name(trim(header.fields[i]));
      names_.push_back(name);
      if (!name.empty() && !places_.emplace(lower_case(name), i).second)
        problems.add(fmt::format("line {}", header.line), "column " + in_quotes(name) + " appears twice");
    }
  }

  bool has(const std::string& name) const { return places_.contains(lower_case(name)); }
  // The row must be as long as the header. Empty if there is no such column.
  std::string at(const CsvRow& row, const std::string& name) const {
    const auto found = places_.find(lower_case(name));
    return found == places_.end() ? std::string() : std::string(trim(row.fields[found->second]));
  }
  std::size_t size() const { return names_.size(); }

  void need(const std::string& name, const CsvRow& header, Problems& problems) const {
    if (has(name)) return;
    const auto near = nearest(name, names_);
    problems.add(fmt::format("line {}", header.line),
                 fmt::format("no column {}{}", in_quotes(name), near ? "; is " + in_quotes(*near) + " meant?" : ""));
  }

  void refuse_unknown(const CsvRow& header, Problems& problems) const {
    for (const std::string& name : names_) {
      const bool found =
          std::ranges::any_of(known, [&](const std::string& word) { return lower_case(word) == lower_case(name); });
      if (!found)
        problems.add(fmt::format("line {}", header.line),
                     fmt::format("unknown column {}{}", in_quotes(name), suggestion(name, known)));
    }
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> places_;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : name_(name), problems_(name), rows_(parse_csv(text, name)) {}

  PriceFile read() {
    if (rows_.empty()) throw UsageError(name_ + ": neither JSON nor a table with a header");
    const CsvRow& header = rows_.front();
    const Columns columns(header, problems_);
    catalogue_ = columns.has("AcceleratorName") && !columns.has("Source") && !columns.has("Date");
    columns.need("InstanceType", header, problems_);
    columns.need("Price", header, problems_);
    if (!catalogue_) {
      columns.need("Source", header, problems_);
      columns.need("Date", header, problems_);
      columns.refuse_unknown(header, problems_);
    }
    problems_.raise();
    PriceFile file;
    file.name = std::filesystem::path(name_).filename().string();
    for (std::size_t i = 1; i < rows_.size(); ++i) read_row(rows_[i], columns, file);
    if (rows_.size() == 1) problems_.add("", "has a header but no row");
    problems_.raise();
    return file;
  }

 private:
  void wrong(const std::string& what) { problems_.add(place_, what); }

  std::optional<double> number(const std::string& text, const char* column) {
    if (text.empty()) return std::nullopt;
    try {
      return parse_real(text);
    } catch (const UsageError& problem) {
      wrong(fmt::format("{}: {}", column, problem.what()));
      return std::nullopt;
    }
  }

  // A price; otherwise sets the placeholder that is there instead.
  std::optional<double> price(const std::string& text, const char* column, std::string& placeholder) {
    const auto value = number(text, column);
    if (!value) return std::nullopt;
    if (*value <= 0 && !catalogue_) {
      wrong(fmt::format("{}: {} is not above 0", column, text));
      return std::nullopt;
    }
    if (catalogue_ && (*value <= 0 || *value == placeholder_price)) {
      placeholder = text;
      return std::nullopt;
    }
    return value;
  }

  void read_row(const CsvRow& row, const Columns& columns, PriceFile& file) {
    place_ = fmt::format("line {}", row.line);
    if (row.fields.size() != columns.size())
      return wrong(fmt::format("{} fields, the header has {}", row.fields.size(), columns.size()));
    Price p;
    p.place = place_;
    p.provider = columns.at(row, "Provider");
    p.instance_type = columns.at(row, "InstanceType");
    p.region = columns.at(row, "Region");
    p.zone = columns.at(row, "AvailabilityZone");
    p.accelerator = columns.at(row, "AcceleratorName");
    p.accelerators = number(columns.at(row, "AcceleratorCount"), "AcceleratorCount");
    if (p.accelerators && *p.accelerators < 0) wrong("AcceleratorCount: negative");
    if (catalogue_ && !p.accelerators) p.accelerators = p.accelerator.empty() ? 0 : 1;
    const std::string asked = columns.at(row, "Price");
    p.on_demand = price(asked, "Price", p.on_demand_placeholder);
    if (const auto spot = price(columns.at(row, "SpotPrice"), "SpotPrice", p.spot_placeholder))
      p.spot = Interval{*spot, *spot};
    if (catalogue_) {
      p.source = "SkyPilot catalogue " + file.name;
      p.date = date_in(file.name);
    } else {
      if (p.instance_type.empty()) wrong("InstanceType: is empty");
      if (asked.empty()) wrong("Price: is missing");
      p.source = columns.at(row, "Source");
      if (p.source.empty()) wrong("Source: is missing");
      p.date = columns.at(row, "Date");
      if (p.date.size() != 10 || !day_of(p.date))
        wrong(p.date.empty() ? "Date: is missing"
                             : fmt::format("Date: {} is not a date (YYYY-MM-DD)", in_quotes(p.date)));
    }
    if (const std::string currency = columns.at(row, "Currency"); !currency.empty() && currency != "USD")
      wrong(fmt::format("Currency: {}: costs are in USD; convert the price and say so in Source", in_quotes(currency)));
    if (p.instance_type.empty() && p.accelerator.empty()) return;
    (p.instance_type.empty() ? file.accelerators : file.prices).push_back(std::move(p));
  }

  // "aws-2026-01-31.csv" names its date.
  static std::string date_in(const std::string& name) {
    for (std::size_t at = 0; at + 10 <= name.size(); ++at)
      if (const std::string part = name.substr(at, 10); day_of(part)) return part;
    return {};
  }

  const std::string& name_;
  Problems problems_;
  std::vector<CsvRow> rows_;
  bool catalogue_ = false;
  std::string place_;
};

}  // namespace

PriceFile read_price_table(std::string_view text, const std::string& name) { return Reader(text, name).read(); }

}  // namespace assay::report
