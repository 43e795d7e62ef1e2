#include "reports/sizing/request.h"

#include "harness/core/configs.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/cost/cost.h"
#include "reports/sizing/candidates.h"
#include "reports/sizing/here.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace assay::report::sizing {

namespace {

std::optional<double> read_positive(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const double value = parse_flag(flag, text, parse_real);
  if (!(value > 0)) throw UsageError(fmt::format("{}: {} must be above 0", flag, one_line(text)));
  return value;
}

void check_sets(const std::vector<std::string>& sets) {
  static const std::vector<std::string> names = {"accumulate",   "chunks", "cp",      "ep",        "lora_rank",
                                                 "lora_targets", "method", "offload", "optimizer", "pp",
                                                 "precision",    "seq",    "tp"};
  for (const std::string& text : sets)
    for (const std::string& pair : split_commas(text))
      if (const std::string name = pair.substr(0, pair.find('=')); std::ranges::find(names, name) == names.end())
        throw UsageError(fmt::format("size: --set {}: cannot be set here{}", one_line(pair), suggestion(name, names)));
}

void add_sheet(std::vector<HardwareSheet>& sheets, const HardwareSheet& sheet) {
  if (std::ranges::none_of(sheets, [&](const auto& known) { return known.name == sheet.name; }))
    sheets.push_back(sheet);
}

constexpr double min_speed = 1e-6, max_speed = 1e12;  // beyond, times are no numbers

Measured read_anchor(const std::string& text, std::vector<HardwareSheet>& sheets) {
  const std::string flag = "size: --anchor " + one_line(text);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw UsageError(fmt::format("{}: must be MACHINE=TOKENS_PER_S, the speed of one GPU: h100-sxm=9600", flag));
  const HardwareSheet sheet = hardware_named(text.substr(0, equals));
  const double speed = parse_flag(flag, text.substr(equals + 1), parse_real);
  if (!(speed >= min_speed && speed <= max_speed))
    throw UsageError(fmt::format("{}: the speed must be above 0: from {} to {}", flag, min_speed, max_speed));
  add_sheet(sheets, sheet);
  return {.hardware = sheet.name,
          .items_per_gpu = {speed, std::nullopt},
          .ranks = std::nullopt,
          .basis = Basis::anchor,
          .source = fmt::format("--anchor, {} per second and GPU", format_number(speed, 0))};
}

}  // namespace

double read_count(const std::string& flag, std::string text) {
  static const std::vector<std::pair<char, double>> units = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}};
  const std::string given = text;
  double factor = 1;
  for (const auto& [letter, value] : units)
    if (!text.empty() && text.back() == letter) {
      factor = value;
      text.pop_back();
      break;
    }
  const double count = factor * parse_flag(flag, text, parse_real);
  if (count >= 1 && count <= 1e18) return count;
  throw UsageError(
      fmt::format("{}: {} must be at least 1 and at most 1e18: \"2e12\", \"300B\"", flag, one_line(given)));
}

std::vector<std::int64_t> read_gpus(const std::string& text) {
  std::set<std::int64_t> all;
  for (const std::string& word : split_commas(text)) {
    const std::size_t dots = word.find("..");
    const std::int64_t low = parse_flag("size: --count", word.substr(0, dots), parse_integer);
    const std::int64_t high =
        dots == std::string::npos ? low : parse_flag("size: --count", word.substr(dots + 2), parse_integer);
    if (low > high)
      throw UsageError(fmt::format("size: --count: {} is reversed; did you mean {}..{}?", one_line(word), high, low));
    if (low < 1 || high > parallel::max_dp)
      throw UsageError(fmt::format("size: --count: {} must be from 1 to {}", one_line(word), parallel::max_dp));
    all.insert({low, high});
    for (std::int64_t gpus = 1; gpus < high; gpus *= 2)
      if (gpus > low) all.insert(gpus);
  }
  return {all.begin(), all.end()};
}

std::vector<HardwareSheet> read_hardware_list(const std::string& list) {
  std::vector<HardwareSheet> all;
  // Nobody rents a CPU for what needs a GPU, unless the user asks for it.
  if (list.empty())
    std::ranges::copy_if(shipped_hardware(), std::back_inserter(all),
                         [](const auto& one) { return one.kind == "gpu"; });
  else
    for (const std::string& word : split_commas(list)) all.push_back(hardware_named(word));
  return all;
}

SizeRequest read_request(const SizeFlags& flags) {
  SizeRequest request;
  request.count_given = !flags.count.empty();
  request.gpus = read_gpus(request.count_given ? flags.count : "1..64");
  std::vector<std::string> words;
  if (!flags.hardware.empty()) words = split_commas(flags.hardware);
  request.here = std::erase(words, here_name) > 0;
  if (request.here && flags.from.empty())
    throw UsageError(
        "size: --hardware here: needs the rates that a run measured on this machine: `assay run quick`, then "
        "--last, or --from with its directory");
  if (flags.hardware.empty()) request.hardware = read_hardware_list("");
  for (const std::string& word : words) request.hardware.push_back(hardware_named(word));
  request.sheets = shipped_hardware();
  check_sets(flags.sets);
  request.items = read_count("size: --tokens", flags.tokens);
  request.budget = read_positive("size: --max-usd", flags.max_usd);
  request.deadline = read_positive("size: --deadline", flags.deadline);
  request.from = flags.from;
  request.published = read_published(configs_dir() / "sizing" / "published.json");
  request.prices = price_files(flags.prices.empty() ? std::nullopt : std::optional(flags.prices));
  // Typical costs of owning say nothing about this buyer.
  for (std::size_t i = flags.prices.empty() ? 0 : 1; i < request.prices.size(); ++i) request.prices[i].owned.clear();
  for (const HardwareSheet& sheet : request.hardware) add_sheet(request.sheets, sheet);
  if (!flags.prices.empty()) request.remarks = unused_prices(request.prices.front(), request.sheets);
  for (const std::string& anchor : flags.anchors) request.measured.push_back(read_anchor(anchor, request.sheets));
  return request;
}

}  // namespace assay::report::sizing
