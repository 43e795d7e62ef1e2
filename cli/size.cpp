// assay size: which machines hold a model, and how long and at what cost they train it, before any is rented.
#include "cli/command.h"
#include "cli/files.h"
#include "cli/size_answer.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/json/json.h"
#include "reports/cost/cost.h"
#include "reports/sizing/records.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

using namespace report::sizing;

struct SizeOptions {
  std::string model;
  std::string tokens;
  std::string budget, deadline;
  std::string hardware;
  std::string gpus = "1..64";
  std::vector<std::string> sets;
  std::vector<std::string> from;
  std::vector<std::string> anchors;
  std::string prices;
  bool json = false;
};

// "300000000000", "3e11", "300B".
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

std::optional<double> read_positive(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const double value = parse_flag(flag, text, parse_real);
  if (!(value > 0)) throw UsageError(fmt::format("{}: {} must be above 0", flag, one_line(text)));
  return value;
}

// "8" or "1..64": both ends, and the powers of two between them.
std::vector<std::int64_t> read_gpus(const std::string& text) {
  const std::size_t dots = text.find("..");
  const std::int64_t low = parse_flag("size: --gpus", text.substr(0, dots), parse_integer);
  const std::int64_t high =
      dots == std::string::npos ? low : parse_flag("size: --gpus", text.substr(dots + 2), parse_integer);
  if (low > high)
    throw UsageError(fmt::format("size: --gpus: {} is reversed; did you mean {}..{}?", one_line(text), high, low));
  if (low < 1 || high > parallel::max_dp)
    throw UsageError(fmt::format("size: --gpus: {} must be from 1 to {}", one_line(text), parallel::max_dp));
  std::vector<std::int64_t> all = {low, high};
  for (std::int64_t gpus = 1; gpus < high; gpus *= 2)
    if (gpus > low) all.push_back(gpus);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void check_sets(const std::vector<std::string>& sets) {
  static const std::vector<std::string> names = {"accumulate", "precision", "seq"};
  for (const std::string& text : sets)
    for (const std::string& pair : split_commas(text))
      if (const std::string name = pair.substr(0, pair.find('='));
          std::find(names.begin(), names.end(), name) == names.end())
        throw UsageError(fmt::format("size: --set {}: cannot be set here{}", one_line(pair), suggestion(name, names)));
}

std::vector<Hardware> read_hardware_list(const std::string& list) {
  std::vector<Hardware> all;
  const std::vector<std::string> words = list.empty() ? config_names("hardware") : split_commas(list);
  for (const std::string& word : words) {
    Hardware each{word, read_hardware(find_config("hardware", "hardware sheet", word))};
    // Nobody rents a CPU for what needs a GPU, unless it is asked for.
    if (!list.empty() || each.sheet.kind == "gpu") all.push_back(std::move(each));
  }
  return all;
}

void add(std::vector<HardwareSheet>& sheets, const HardwareSheet& sheet) {
  if (std::none_of(sheets.begin(), sheets.end(), [&](const auto& known) { return known.name == sheet.name; }))
    sheets.push_back(sheet);
}

Measured read_anchor(const std::string& text, std::vector<HardwareSheet>& sheets) {
  const std::string flag = "size: --anchor " + one_line(text);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw UsageError(fmt::format("{}: must be MACHINE=TOKENS_PER_S, the speed of one GPU: h100-sxm=9600", flag));
  const HardwareSheet sheet = read_hardware(find_config("hardware", "hardware sheet", text.substr(0, equals)));
  const double speed = parse_flag(flag, text.substr(equals + 1), parse_real);
  if (!(speed > 0)) throw UsageError(fmt::format("{}: the speed must be above 0", flag));
  add(sheets, sheet);
  return {.hardware = sheet.name,
          .items_per_gpu = {speed, std::nullopt},
          .ranks = std::nullopt,
          .basis = Basis::anchor,
          .source = fmt::format("--anchor, {} per second and GPU", format_number(speed, 0))};
}

class Sizing {
 public:
  explicit Sizing(const SizeOptions& options)
      : gpus_(read_gpus(options.gpus)),
        hardware_(read_hardware_list(options.hardware)),
        sheets_(load_hardware(configs_dir() / "hardware")),
        search_((check_sets(options.sets), options.model), options.sets, gpus_) {
    answer_.items = read_count("size: --tokens", options.tokens);
    answer_.budget = read_positive("size: --budget", options.budget);
    answer_.deadline = read_positive("size: --deadline", options.deadline);
    answer_.published = read_published(configs_dir() / "sizing" / "published.json");
    const training::Settings& settings = search_.settings();
    answer_.model = search_.estimator().name();
    answer_.precision = settings.precision;
    answer_.seq = settings.seq;
    files_ = report::price_files(options.prices.empty() ? std::nullopt : std::optional(options.prices));
    // Typical costs of owning say nothing about this buyer.
    for (std::size_t i = options.prices.empty() ? 0 : 1; i < files_.size(); ++i) files_[i].owned.clear();
    for (const Hardware& each : hardware_) add(sheets_, each.sheet);
    if (!options.prices.empty()) answer_.remarks = unused_prices(files_.front(), sheets_);
    for (const std::string& anchor : options.anchors) measured_.push_back(read_anchor(anchor, sheets_));
    if (!options.from.empty()) read_speeds(options);
  }

  const SizeAnswer& answer() {
    for (const Hardware& hardware : hardware_)
      for (const std::int64_t gpus : gpus_) judge(hardware, gpus);
    std::stable_sort(answer_.ranked.begin(), answer_.ranked.end(), [](const Sized& a, const Sized& b) {
      const auto order = [](const Sized& each) {
        const auto usd = each.candidate.usd();
        // Without a price, GPU hours stand for it.
        const Range range = usd.value_or(scaled(each.candidate.hours, static_cast<double>(each.candidate.gpus)));
        return std::tuple(!usd, !range.high, range.high.value_or(range.low));
      };
      return order(a) < order(b);
    });
    if (answer_.ranked.empty()) say_what_would();
    return answer_;
  }

 private:
  void read_speeds(const SizeOptions& options) {
    const report::RunSet runs(read_runs(options.from), report::Injected::exclude);
    const Speeds speeds = speeds_of(runs, answer_.model, answer_.precision, answer_.seq, sheets_);
    measured_.insert(measured_.end(), speeds.measured.begin(), speeds.measured.end());
    for (const std::string& device : speeds.unknown_devices)
      answer_.remarks.push_back(fmt::format("records of {} were not used: no sheet describes it", one_line(device)));
    if (!speeds.measured.empty()) return;
    throw Error(
        fmt::format("size: --from: no figure that counts of {} in {}{} on hardware with a sheet in {}",
                    one_line(answer_.model), answer_.precision,
                    answer_.seq > 0 ? fmt::format(" at seq {}", answer_.seq) : "", fmt::join(options.from, ", ")),
        ExitCode::no_data);
  }

  void reject(const Hardware& hardware, std::int64_t gpus, std::string reason, bool judged,
              std::optional<std::uint64_t> short_by = std::nullopt) {
    answer_.rejected.push_back({hardware.sheet.name, gpus, std::move(reason), short_by, judged});
  }

  Work work_of(const MemoryEstimate& estimate) const {
    const training::Settings& settings = estimate.settings;
    const auto samples = static_cast<double>(settings.micro_batch * settings.accumulate);
    const auto parameters = static_cast<double>(search_.estimator().loaded().parameters());
    const auto ranks = static_cast<double>(estimate.layout.dp);
    constexpr double least_gradient = 2;  // bytes
    return {.items = samples * static_cast<double>(settings.items_per_sample()),
            .seq = settings.seq,
            .parameters = parameters,
            .flops = samples * settings.model->cost({1, settings.seq}).training,
            // Weights are read, gradients written, moments read and written.
            .bytes = static_cast<double>(estimate.memory.weights + estimate.memory.gradients +
                                         2 * estimate.memory.optimizer),
            .exchanged = least_gradient * parameters * (ranks - 1) / ranks,
            .precision = settings.precision};
  }

  std::optional<PyTorchRatio> pytorch_of(const Hardware& hardware) const {
    for (const PyTorchRatio& ratio : answer_.published.beside_pytorch)
      if (ratio.model == answer_.model && ratio.precision == answer_.precision &&
          (ratio.device == "cpu") == (hardware.sheet.kind == "cpu"))
        return ratio;
    return std::nullopt;
  }

  void judge(const Hardware& hardware, std::int64_t gpus) {
    const HardwareSheet& sheet = hardware.sheet;
    if (!peak_of(sheet, answer_.precision))
      return reject(hardware, gpus, fmt::format("its sheet has no peak in {}", answer_.precision), false);
    if (!sheet.memory_bytes) return reject(hardware, gpus, "its sheet has no memory_bytes", false);
    Held held = search_.on(hardware, gpus);
    const std::uint64_t needed = held.estimate.total();
    if (!held.fits)
      return reject(hardware, gpus,
                    fmt::format("does not hold it: short by {} with micro_batch {}, zero {}, checkpointing {}",
                                format_bytes(static_cast<double>(needed - *sheet.memory_bytes)),
                                held.estimate.settings.micro_batch, held.estimate.layout.zero,
                                word_of(held.estimate.settings.checkpointing)),
                    true, needed - *sheet.memory_bytes);
    const Work work = work_of(held.estimate);
    Candidate candidate{sheet.name, gpus, forecast(sheet, sheets_, measured_, work, gpus, answer_.published), {}, {}};
    candidate.hours = hours_of(candidate.step, work, gpus, answer_.items, answer_.published);
    candidate.offer = cheapest(files_, sheet, gpus);
    if (beyond_limits(hardware, candidate)) return;
    answer_.ranked.push_back(
        {std::move(candidate), work, std::move(held.estimate), *sheet.memory_bytes, pytorch_of(hardware)});
  }

  // Whether it surely misses the deadline or the budget, or nobody can say; then it has been rejected.
  bool beyond_limits(const Hardware& hardware, const Candidate& candidate) {
    const double hours = candidate.hours.low;
    if (answer_.deadline && hours > *answer_.deadline) {
      keep_least(hours_needed_, candidate, hours);
      reject(hardware, candidate.gpus,
             fmt::format("takes at least {:.3g} h, {:.3g} beyond the deadline", hours, hours - *answer_.deadline),
             true);
      return true;
    }
    if (!answer_.budget) return false;
    const auto usd = candidate.usd();
    if (!usd) {
      reject(hardware, candidate.gpus, "no price is known, so neither is its cost", false);
      return true;
    }
    if (usd->low <= *answer_.budget) return false;
    keep_least(usd_needed_, candidate, usd->low);
    reject(hardware, candidate.gpus,
           fmt::format("costs at least USD {}, {} beyond the budget", format_number(usd->low, 0),
                       format_number(usd->low - *answer_.budget, 0)),
           true);
    return true;
  }

  // A rejected candidate and what it needs of what was limited.
  struct Needed {
    Candidate candidate;
    double amount = 0;
  };

  static void keep_least(std::optional<Needed>& least, const Candidate& candidate, double amount) {
    if (!least || amount < least->amount) least = Needed{candidate, amount};
  }

  void say_what_would() {
    std::optional<std::uint64_t> least_bytes;
    for (const Hardware& hardware : hardware_) {
      const HardwareSheet& sheet = hardware.sheet;
      if (!peak_of(sheet, answer_.precision) || !sheet.memory_bytes) continue;
      const Held held = search_.on(hardware, gpus_.back());
      if (held.fits) continue;
      if (const auto more = search_.fewest_above(hardware, gpus_.back()))
        answer_.would.push_back(fmt::format("{} x {}: --gpus {}", sheet.name, *more, *more));
      const std::uint64_t needed = held.estimate.total();
      least_bytes = std::min(least_bytes.value_or(needed), needed);
    }
    if (answer_.would.empty() && least_bytes)
      answer_.would.push_back(
          fmt::format("hardware with {} for each rank", format_bytes(static_cast<double>(*least_bytes))));
    for (const auto& [needed, flag] : {std::pair(&hours_needed_, "--deadline"), std::pair(&usd_needed_, "--budget")})
      if (*needed)
        answer_.would.push_back(fmt::format("{} x {}: {} {:.0f}", (*needed)->candidate.hardware,
                                            (*needed)->candidate.gpus, flag, std::ceil((*needed)->amount)));
  }

  std::vector<std::int64_t> gpus_;
  std::vector<Hardware> hardware_;
  std::vector<HardwareSheet> sheets_;
  LayoutSearch search_;
  std::vector<report::PriceFile> files_;
  std::vector<Measured> measured_;
  std::optional<Needed> hours_needed_, usd_needed_;
  SizeAnswer answer_;
};

ExitCode size(const SizeOptions& options) {
  Sizing sizing(options);
  const SizeAnswer& answer = sizing.answer();
  if (options.json)
    fmt::print("{}", dump_document(to_json(answer), 2));
  else
    print(answer);
  if (!answer.ranked.empty()) return ExitCode::ok;
  const bool judged =
      std::any_of(answer.rejected.begin(), answer.rejected.end(), [](const Rejected& each) { return each.judged; });
  return judged ? ExitCode::failed : ExitCode::no_data;
}

}  // namespace

Command size_command(CLI::App& root) {
  auto options = std::make_shared<SizeOptions>();
  CLI::App* app = root.add_subcommand("size", "Which machines hold a model, how fast, at what cost: before renting");
  app->add_option("model", options->model, "A model of configs/models, a file like them, or a Hugging Face config.json")
      ->required()
      ->type_name("MODEL");
  app->add_option("--tokens", options->tokens, "Tokens, or images, of the whole training: 2e12, 300B")
      ->required()
      ->type_name("N");
  app->add_option("--budget", options->budget, "USD that the training may cost")->type_name("USD");
  app->add_option("--deadline", options->deadline, "Hours that it may take")->type_name("HOURS");
  app->add_option("--hardware", options->hardware, "Sheets by name or file; default: all GPUs of configs/hardware")
      ->type_name("A,B");
  app->add_option("--gpus", options->gpus, "How many: both ends and the powers of two between; default: 1..64")
      ->type_name("LOW..HIGH");
  app->add_option("--set", options->sets, "The step: seq, accumulate, precision; default: the recipe's, in bf16")
      ->type_name("NAME=VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--from", options->from, "Run directories with measured steps of this model")->type_name("RUN");
  app->add_option("--anchor", options->anchors, "Speed of one GPU in your own framework: h100-sxm=9600")
      ->type_name("MACHINE=TOKENS_PER_S")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--prices", options->prices, "Prices of machines: JSON or a SkyPilot catalogue (CSV)")
      ->type_name("FILE");
  app->add_flag("--json", options->json, "As JSON");
  app->footer("Exit codes: 1 nothing fits; 3 what is known does not suffice to say.");
  return {app, [options] { return size(*options); }};
}

}  // namespace assay::cli
