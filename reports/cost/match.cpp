#include "reports/cost/match.h"

#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace assay::report {

namespace {

bool same(std::string_view a, std::string_view b) { return compare_names(a, b) == 0; }

// Alphanumeric words in upper case: "NVIDIA A100-SXM4-80GB" -> NVIDIA, A100, SXM4, 80GB.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const unsigned char c : text) {
    if (std::isalnum(c))
      words.back() += static_cast<char>(std::toupper(c));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// Whether a device's name has all words of a kind: "NVIDIA H100 80GB HBM3" is an "H100".
bool is_kind(const std::string& device, const std::string& kind) {
  const auto have = words_of(device), want = words_of(kind);
  return !want.empty() && std::ranges::all_of(want, [&](const auto& word) { return holds(have, word); });
}

// Whether it could be that kind: catalogues add words that device names lack ("H100-MEGA", "A10G").
bool may_be_kind(const std::string& device, const std::string& kind) {
  const auto want = words_of(kind);
  if (device.empty() || want.empty()) return true;
  return joined(words_of(device), "").find(want.front()) != std::string::npos;
}

std::string usd_text(double usd) { return fmt::format("{:.6g} USD", usd); }

// The prices that one file has for one machine.
class Candidates {
 public:
  Candidates(const PriceFile& file, const RunMachine& machine) : file_(file), machine_(machine) {
    const std::string& type = machine.instance_type;
    const auto before = [](std::string_view a, std::string_view b) { return compare_names(a, b) < 0; };
    auto row = std::ranges::lower_bound(file.prices, type, before, &Price::instance_type);
    for (; row != file.prices.end() && same(row->instance_type, type); ++row) {
      const bool any = row->provider.empty() || machine.provider.empty();
      if (any || same(row->provider, machine.provider))
        all_.push_back(*row);
      else
        other_provider_ = row->provider;
    }
    if (!machine.region.empty() && !all_.empty()) {
      std::vector<Price> here;
      std::ranges::copy_if(all_, std::back_inserter(here), [&](const Price& price) {
        return price.region.empty() || same(price.region, machine.region) || same(price.zone, machine.region);
      });
      elsewhere_ = here.empty();
      if (!elsewhere_) all_ = std::move(here);
    }
    for (Price& price : all_) price = complete(price);
  }

  bool empty() const { return all_.empty(); }
  // If it is empty: that the file has a price of another provider; else empty.
  std::string of_another() const {
    if (other_provider_.empty()) return {};
    return fmt::format("{} has a price for {} of provider {}, not of {}: not used", file_.name, machine_.instance_type,
                       in_quotes(other_provider_), in_quotes(machine_.provider));
  }

  // Absent if the file says nothing of such a price.
  std::optional<HourlyPrice> offer(Basis basis) const {
    std::vector<Quote> quotes;
    std::set<std::string> placeholders;
    for (const Price& row : all_) {
      const bool spot = basis == Basis::spot;
      const std::string& placeholder = spot ? row.spot_placeholder : row.on_demand_placeholder;
      if (spot && row.spot)
        quotes.push_back({&row, row.spot->low, row.spot->high});
      else if (!spot && row.on_demand)
        quotes.push_back({&row, *row.on_demand, *row.on_demand});
      else if (!placeholder.empty())
        placeholders.insert(placeholder);
    }
    return choose(basis, quotes, placeholders);
  }

 private:
  struct Quote {
    const Price* price;
    double low, high;
    double middle() const { return 0.5 * (low + high); }
  };

  // Adds the price of the machine's GPUs if the file lists accelerators separately.
  Price complete(const Price& host) {
    if (file_.accelerators.empty() || host.accelerators.value_or(0) > 0 || machine_.gpus == 0) return host;
    // The most specific name: an A100 with 80 GB is both "A100" and "A100-80GB".
    std::string kind = machine_.gpu;
    std::size_t words = 0;
    for (const Price& row : file_.accelerators)
      if (const std::size_t count = words_of(row.accelerator).size();
          count > words && is_kind(machine_.gpu, row.accelerator))
        kind = row.accelerator, words = count;
    const Price* best = nullptr;
    for (const Price& row : file_.accelerators) {
      const bool zone = row.zone.empty() || host.zone.empty() || same(row.zone, host.zone);
      if (!same(row.accelerator, kind) || row.accelerators != machine_.gpus || !same(row.region, host.region) || !zone)
        continue;
      if (!best || row.on_demand.value_or(HUGE_VAL) < best->on_demand.value_or(HUGE_VAL)) best = &row;
    }
    Price whole = host;
    whole.accelerator = kind;
    whole.accelerators = machine_.gpus;
    if (!best) {
      incomplete_.insert(fmt::format("{} has no row for {} x {} in {}, only for the host without GPUs", file_.name,
                                     machine_.gpus, kind, host.zone.empty() ? host.region : host.zone));
      whole.on_demand.reset();
      whole.spot.reset();
      return whole;
    }
    whole.on_demand =
        host.on_demand && best->on_demand ? std::optional(*host.on_demand + *best->on_demand) : std::nullopt;
    if (whole.on_demand_placeholder.empty()) whole.on_demand_placeholder = best->on_demand_placeholder;
    whole.spot = host.spot && best->spot
                     ? std::optional(Interval{host.spot->low + best->spot->low, host.spot->high + best->spot->high})
                     : std::nullopt;
    if (whole.spot_placeholder.empty()) whole.spot_placeholder = best->spot_placeholder;
    return whole;
  }

  std::optional<HourlyPrice> choose(Basis basis, const std::vector<Quote>& quotes,
                                    const std::set<std::string>& placeholders) const {
    HourlyPrice price;
    price.basis = basis;
    if (!placeholders.empty())
      price.warnings.push_back(fmt::format("{} has the placeholder {} instead of a price{}", file_.name,
                                           fmt::join(placeholders, ", "),
                                           quotes.empty() ? "" : " in some rows: left out"));
    if (price.basis == Basis::on_demand)
      price.warnings.insert(price.warnings.end(), incomplete_.begin(), incomplete_.end());
    if (quotes.empty()) {
      describe(price, all_.front());
      if (price.warnings.empty()) return std::nullopt;
      return price;
    }
    std::map<std::string, std::vector<double>> regions;
    std::set<std::string> sources;
    const Quote* lowest = &quotes.front();
    const Quote* highest = &quotes.front();
    bool dated = true, ranges = false;
    std::string oldest;
    for (const Quote& quote : quotes) {
      regions[quote.price->region].push_back(quote.middle());
      sources.insert(quote.price->source);
      if (quote.low < lowest->low) lowest = &quote;
      if (quote.high > highest->high) highest = &quote;
      ranges |= quote.low < quote.high;
      dated &= !quote.price->date.empty();
      if (oldest.empty() || quote.price->date < oldest) oldest = quote.price->date;
    }
    std::vector<double> medians;
    for (const auto& [region, values] : regions) medians.push_back(median(values));
    price.usd = median(medians);
    price.source = joined(sources, "; ");
    price.date = dated ? oldest : "";
    price.region = regions.size() == 1 ? regions.begin()->first : fmt::format("{} regions", regions.size());
    if (lowest->low < highest->high) {
      price.range = Interval{lowest->low, highest->high};
      price.rule = regions.size() > 1  ? fmt::format("median of {} regions", regions.size())
                   : quotes.size() > 1 ? fmt::format("median of {} rows of the region", quotes.size())
                                       : "middle of the range";
    }
    if (elsewhere_)
      price.warnings.push_back(fmt::format("{} has no price for {} in region {}: used {}", file_.name,
                                           machine_.instance_type, in_quotes(machine_.region),
                                           regions.size() > 1 ? price.rule : in_quotes(price.region)));
    if (regions.size() > 1 && price.range)
      price.warnings.push_back(
          fmt::format("{}, {} ({}) to {} ({}): {}", price.rule, usd_text(lowest->low), lowest->price->region,
                      usd_text(highest->high), highest->price->region,
                      elsewhere_ ? "none is the run's" : "the run names no region (--label region=)"));
    else if (ranges)
      price.warnings.push_back(fmt::format("{} price varies: {} to {}, {}", name_of(price.basis), usd_text(lowest->low),
                                           usd_text(highest->high), price.rule));
    if (*price.usd == placeholder_price)
      price.warnings.push_back("700 USD per hour is what catalogues show for an unknown price");
    warn_of_gpus(price, *quotes.front().price);
    return price;
  }

  static void describe(HourlyPrice& price, const Price& row) {
    price.source = row.source;
    price.date = row.date;
    price.region = row.region;
  }

  void warn_of_gpus(HourlyPrice& price, const Price& row) const {
    if (!row.accelerators) return;
    const double priced = std::ceil(*row.accelerators);  // part of a GPU shows as one
    const std::string kind = row.accelerator.empty() ? "GPU" : row.accelerator;
    if (machine_.gpus == 0 && priced > 0)
      price.warnings.push_back(fmt::format("the price is for {:g} x {}, the run used none", *row.accelerators, kind));
    else if (machine_.gpus > 0 && priced != machine_.gpus)
      price.warnings.push_back(
          fmt::format("the price is for {:g} x {}, the machine has {}", *row.accelerators, kind, machine_.gpus));
    else if (machine_.gpus > 0 && !row.accelerator.empty() && !may_be_kind(machine_.gpu, row.accelerator))
      price.warnings.push_back(fmt::format("the price is for {}, the machine has {}", kind, machine_.gpu));
  }

  const PriceFile& file_;
  const RunMachine& machine_;
  std::vector<Price> all_;
  bool elsewhere_ = false;
  std::string other_provider_;
  std::set<std::string> incomplete_;
};

bool stands_for(const Ownership& owned, const RunMachine& machine) {
  if (!owned.instance_type.empty()) return same(owned.instance_type, machine.instance_type);
  if (!owned.hosts.empty())
    return !machine.hosts.empty() && std::ranges::all_of(machine.hosts, [&](const std::string& host) {
      return std::ranges::any_of(owned.hosts, [&](const auto& own) { return same(own, host); });
    });
  return owned.gpus == machine.gpus && is_kind(machine.gpu, owned.gpu);
}

HourlyPrice owned_price(const Ownership& owned) {
  HourlyPrice price;
  price.basis = Basis::owned;
  price.usd = usd_per_useful_hour(owned);
  price.source = owned.name.empty() ? owned.source : owned.name + ": " + owned.source;
  price.date = owned.date;
  if (const std::string absent = not_counted(owned); !absent.empty())
    price.warnings.push_back(fmt::format("owned: {} not counted, so this is a lower bound", absent));
  return price;
}

std::string start_of(const RunData& run) {
  std::string start = text_member(run.run, "/started");
  for (const Record& record : run.records)
    if (start.empty()) start = record.started;
  return start;
}

void warn_of_age(HourlyPrice& price, const std::optional<long>& run_day) {
  const auto day = day_of(price.date);
  if (!day)
    price.warnings.push_back("the price has no date: its age is unknown");
  else if (!run_day)
    price.warnings.push_back(
        fmt::format("price of {}: the run has no start, so the price's age is unknown", price.date));
  else if (*run_day - *day > days_until_old)
    price.warnings.push_back(
        fmt::format("price of {}: more than {} days older than the run", price.date, days_until_old));
}

}  // namespace

MachinePrices prices_of(const RunData& run, const PriceSource& source) {
  MachinePrices prices;
  prices.machine = machine_of(run);
  const RunMachine& machine = prices.machine;
  if (source.given) {
    HourlyPrice price;
    price.basis = Basis::given;
    price.usd = source.given;
    price.source = source.given_by;
    if (*price.usd == placeholder_price)
      price.warnings.push_back("700 USD per hour is what catalogues show for an unknown price");
    prices.offers.push_back(std::move(price));
    return prices;
  }
  if (!machine.instance_type.empty()) {
    std::vector<std::string> passed_over;
    for (const PriceFile& file : source.files) {
      const Candidates candidates(file, machine);
      if (candidates.empty()) {
        if (auto text = candidates.of_another(); !text.empty()) passed_over.push_back(std::move(text));
        continue;
      }
      for (auto price : {candidates.offer(Basis::on_demand), candidates.offer(Basis::spot)})
        if (price) prices.offers.push_back(std::move(*price));
      break;
    }
    for (HourlyPrice& price : prices.offers)
      price.warnings.insert(price.warnings.end(), passed_over.begin(), passed_over.end());
  }
  for (const PriceFile& file : source.files) {
    const auto found =
        std::ranges::find_if(file.owned, [&](const Ownership& owned) { return stands_for(owned, machine); });
    if (found == file.owned.end()) continue;
    prices.offers.push_back(owned_price(*found));
    break;
  }
  const auto run_day = day_of(start_of(run));
  for (HourlyPrice& price : prices.offers) warn_of_age(price, run_day);
  return prices;
}

std::string why_no_price(const RunMachine& machine, const PriceSource& source) {
  if (machine.instance_type.empty()) return "the run names no instance type";
  std::set<std::string> unique;
  for (const PriceFile& file : source.files) {
    if (const std::string text = Candidates(file, machine).of_another(); !text.empty()) return text;
    for (const Price& price : file.prices) unique.insert(price.instance_type);
  }
  const std::vector<std::string> types(unique.begin(), unique.end());
  const auto near = nearest(machine.instance_type, types);
  return fmt::format("no file has a price for {}{}", in_quotes(machine.instance_type),
                     near ? "; the nearest name is " + in_quotes(*near) : "");
}

std::string unused_file(std::span<const RunData> runs, const PriceSource& source) {
  if (!source.asked || source.given || source.files.empty() || runs.empty()) return {};
  const PriceFile& own = source.files.front();
  std::set<std::string> machines;
  for (const RunData& run : runs) {
    const RunMachine machine = machine_of(run);
    if (!Candidates(own, machine).empty() ||
        std::ranges::any_of(own.owned, [&](const Ownership& one) { return stands_for(one, machine); }))
      return {};
    const std::string name = machine.instance_type.empty() ? machine.name : machine.instance_type;
    machines.insert(name.empty() ? "an unknown machine" : name);
  }
  const bool types =
      std::ranges::any_of(runs, [](const RunData& run) { return !machine_of(run).instance_type.empty(); });
  return fmt::format("{} has no price for {}{}", own.name, fmt::join(machines, ", nor for "),
                     types ? "" : ": the runs name no instance type (assay run --label instance_type=NAME)");
}

}  // namespace assay::report
