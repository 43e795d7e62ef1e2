// Price files in Assay's own format.
#include "reports/cost/price.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "reports/cost/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

namespace assay::report {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t largest_file = std::uintmax_t{64} << 20;
constexpr double max_usd = 1e9;

// Values for entries without their own.
struct Defaults {
  std::optional<std::string> source, date;
};

// Money: above 0.
std::optional<double> read_usd(const Cursor& cursor) {
  const auto value = cursor.number(-HUGE_VAL, max_usd);
  if (!value || *value > 0) return value;
  cursor.error(fmt::format("{} is not above 0", cursor.json().dump()));
  return std::nullopt;
}

std::optional<std::string> read_source(const Cursor& cursor) {
  auto text = cursor.text();
  if (text && text->empty()) cursor.error("must not be empty: a URL or the name of a catalogue");
  return text;
}

std::optional<std::string> read_date(const Cursor& cursor) {
  auto text = cursor.text();
  if (text && (text->size() != 10 || !day_of(*text)))
    cursor.error(fmt::format("{} is not a date (YYYY-MM-DD)", in_quotes(*text)));
  return text;
}

std::optional<std::string> read_currency(const Cursor& cursor) {
  auto text = cursor.text();
  if (text && *text != "USD")
    cursor.error(fmt::format("{}: costs are in USD; convert the prices and say so in \"source\"", in_quotes(*text)));
  return text;
}

Defaults read_defaults(const Cursor& cursor, const Defaults& inherited) {
  Defaults own = inherited;
  if (const auto source = cursor.find("source")) own.source = read_source(*source).value_or("");
  if (const auto date = cursor.find("date")) own.date = read_date(*date).value_or("");
  if (const auto currency = cursor.find("currency")) read_currency(*currency);
  return own;
}

// The entry's values, else the file's; a problem if there are none.
void read_origin(const Cursor& cursor, const Defaults& inherited, std::string& source, std::string& date) {
  const Defaults own = read_defaults(cursor, inherited);
  if (!own.source) cursor.error("has no \"source\", and neither has the file: a URL or the name of a catalogue");
  if (!own.date) cursor.error("has no \"date\", and neither has the file: YYYY-MM-DD");
  source = own.source.value_or("");
  date = own.date.value_or("");
}

// A spot price or [lowest, highest].
std::optional<Interval> read_spot(const Cursor& cursor) {
  if (!cursor.json().is_array()) {
    const auto value = read_usd(cursor);
    return value ? std::optional(Interval{*value, *value}) : std::nullopt;
  }
  const std::vector<Cursor> ends = cursor.elements();
  if (ends.size() != 2) {
    cursor.error(fmt::format("must be a price or [lowest, highest], has {} elements", ends.size()));
    return std::nullopt;
  }
  const auto low = read_usd(ends[0]), high = read_usd(ends[1]);
  if (!low || !high) return std::nullopt;
  if (*low > *high) cursor.error("the lowest price is above the highest");
  return Interval{*low, *high};
}

std::optional<double> maybe_number(const Cursor& cursor, const char* name, double minimum, double maximum) {
  const auto found = cursor.find(name);
  return found ? found->number(minimum, maximum) : std::nullopt;
}

void read_price(const Cursor& cursor, const Defaults& defaults, PriceFile& file) {
  if (!cursor.object()) return;
  cursor.only({"provider", "instance_type", "region", "zone", "gpu", "gpus", "price", "spot_price", "source",
               "currency", "date", "note"});
  Price price;
  price.place = cursor.pointer();
  price.provider = cursor.text_of("provider");
  if (const auto type = cursor.need("instance_type")) {
    price.instance_type = type->text().value_or("");
    if (type->json().is_string() && price.instance_type.empty()) type->error("must not be empty");
  }
  price.region = cursor.text_of("region");
  price.zone = cursor.text_of("zone");
  price.accelerator = cursor.text_of("gpu");
  price.accelerators = maybe_number(cursor, "gpus", 0, 1e6);
  if (const auto value = cursor.need("price")) price.on_demand = read_usd(*value);
  if (const auto spot = cursor.find("spot_price")) price.spot = read_spot(*spot);
  price.note = cursor.text_of("note");
  read_origin(cursor, defaults, price.source, price.date);
  file.prices.push_back(std::move(price));
}

double need_number(const Cursor& cursor, const char* name, double minimum, double maximum) {
  const auto found = cursor.need(name);
  return found ? found->number(minimum, maximum).value_or(minimum) : minimum;
}

void read_owned(const Cursor& cursor, const Defaults& defaults, PriceFile& file) {
  if (!cursor.object()) return;
  cursor.only({"name", "instance_type", "hosts", "gpu", "gpus", "capex", "years", "power_kw", "pue", "usd_per_kwh",
               "residual", "cost_of_capital", "colocation", "staff", "utilisation", "source", "date", "currency",
               "note"});
  Ownership owned;
  owned.place = cursor.pointer();
  owned.name = cursor.text_of("name");
  owned.instance_type = cursor.text_of("instance_type");
  if (const auto hosts = cursor.find("hosts")) {
    if (!hosts->json().is_array())
      hosts->error("must be a list of host names");
    else
      for (const Cursor& host : hosts->elements()) owned.hosts.push_back(host.text().value_or(""));
  }
  owned.gpu = cursor.text_of("gpu");
  owned.gpus = maybe_number(cursor, "gpus", 0, 1e6);
  if (owned.instance_type.empty() && owned.hosts.empty() && (owned.gpu.empty() || !owned.gpus))
    cursor.error("describes no machine: give \"instance_type\", \"hosts\", or \"gpu\" and \"gpus\"");
  if (const auto capex = cursor.need("capex")) owned.capex = read_usd(*capex).value_or(1);
  owned.years = need_number(cursor, "years", 0.1, 50);
  owned.power_kw = need_number(cursor, "power_kw", 0, 1e4);
  owned.pue = need_number(cursor, "pue", 1, 10);
  owned.usd_per_kwh = need_number(cursor, "usd_per_kwh", 0, 100);
  owned.residual = maybe_number(cursor, "residual", 0, 1);
  owned.cost_of_capital = maybe_number(cursor, "cost_of_capital", 0, 1);
  owned.colocation = maybe_number(cursor, "colocation", 0, max_usd);
  owned.staff = maybe_number(cursor, "staff", 0, max_usd);
  owned.utilisation = maybe_number(cursor, "utilisation", 0.001, 1);
  owned.note = cursor.text_of("note");
  read_origin(cursor, defaults, owned.source, owned.date);
  file.owned.push_back(std::move(owned));
}

PriceFile read_json_prices(const fs::path& path) {
  return read_strictly(path, price_schema, {"schema", "description", "source", "date", "currency", "prices", "owned"},
                       [&](const Cursor& root) {
                         PriceFile file;
                         file.name = path.filename().string();
                         root.text_of("description");
                         const Defaults defaults = read_defaults(root, {});
                         const auto each = [&](const char* name, auto read) {
                           const auto list = root.find(name);
                           if (!list) return;
                           if (!list->json().is_array()) return list->error("must be a list");
                           for (const Cursor& entry : list->elements()) read(entry, defaults, file);
                         };
                         each("prices", read_price);
                         each("owned", read_owned);
                         if (root.problems().empty() && file.prices.empty() && file.owned.empty())
                           root.error("has no price: neither \"prices\" nor \"owned\" has an entry");
                         return file;
                       });
}

// JSON or a table, depending on the content.
PriceFile read_any(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(path, none) || fs::file_size(path, none) == 0) return read_json_prices(path);
  std::string text;
  try {
    text = read_whole(path, largest_file);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n", text.starts_with("\xef\xbb\xbf") ? 3 : 0);
  const bool json = first == std::string::npos || text[first] == '{' || text[first] == '[' || text[first] == '/';
  if (json || path.extension() == ".json") return read_json_prices(path);
  if (!is_utf8(text)) throw UsageError(path.string() + ": not UTF-8");
  return read_price_table(text, path.string());
}

}  // namespace

std::optional<long> day_of(const std::string& text) {
  if (text.size() < 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto part = [&](std::size_t from, std::size_t length) {
    int value = -1;
    const char* end = text.data() + from + length;
    const auto [stopped, error] = std::from_chars(text.data() + from, end, value);
    return error == std::errc() && stopped == end ? value : -1;
  };
  const int year = part(0, 4), month = part(5, 2), day = part(8, 2);
  if (year < 0 || month < 1 || day < 1) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return static_cast<long>(std::chrono::sys_days(date).time_since_epoch().count());
}

long today() {
  return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()).time_since_epoch().count();
}

std::optional<long> age_of(const std::string& date, std::optional<long> day) {
  const auto from = day_of(date);
  return from && day ? std::optional(*day - *from) : std::nullopt;
}

std::string dated(const std::string& date, std::optional<long> age) {
  if (date.empty()) return "of unknown date";
  return date + (age && *age >= 0 ? fmt::format(", {} old", plural(*age, "day")) : "");
}

int compare_names(std::string_view a, std::string_view b) {
  const auto low = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (low(a[i]) != low(b[i])) return low(a[i]) - low(b[i]);
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

PriceFile read_price_file(const fs::path& path) {
  PriceFile file = read_any(path);
  const auto in_order = [](const Price& a, const Price& b) {
    if (const int order = compare_names(a.instance_type, b.instance_type)) return order < 0;
    const auto spot = [](const Price& p) {
      return p.spot ? std::pair(p.spot->low, p.spot->high) : std::pair(0.0, 0.0);
    };
    return std::tuple(std::tie(a.instance_type, a.region, a.zone, a.accelerator, a.accelerators, a.on_demand), spot(a),
                      std::tie(a.date, a.source, a.provider)) <
           std::tuple(std::tie(b.instance_type, b.region, b.zone, b.accelerator, b.accelerators, b.on_demand), spot(b),
                      std::tie(b.date, b.source, b.provider));
  };
  std::ranges::sort(file.prices, in_order);
  std::ranges::sort(file.accelerators, in_order);
  return file;
}

static constexpr double hours_per_year = 8760;

double usd_per_useful_hour(const Ownership& owned) {
  const double depreciation = owned.capex * (1 - owned.residual.value_or(0)) / owned.years;
  const double capital = owned.capex * owned.cost_of_capital.value_or(0);
  const double energy = owned.power_kw * owned.pue * owned.usd_per_kwh;
  const double running = energy + owned.colocation.value_or(0) + owned.staff.value_or(0);
  return ((depreciation + capital) / hours_per_year + running) / owned.utilisation.value_or(1);
}

std::string not_counted(const Ownership& owned) {
  std::vector<std::string> absent;
  if (!owned.cost_of_capital) absent.emplace_back("cost of capital");
  if (!owned.residual) absent.emplace_back("residual value");
  if (!owned.colocation) absent.emplace_back("colocation");
  if (!owned.staff) absent.emplace_back("staff");
  if (!owned.utilisation) absent.emplace_back("idle hours");
  return joined(absent);
}

}  // namespace assay::report
