#include "reports/sizing/sizing.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/machine/links.h"
#include "reports/sizing/here.h"
#include "reports/sizing/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace assay::report::sizing {

namespace {

class Sizing {
 public:
  Sizing(SizeRequest request, const RunSet* runs, const Planner& planner)
      : asked_(std::move(request)), planner_(planner) {
    answer_.model = planner.model;
    answer_.precision = planner.precision;
    answer_.seq = planner.seq;
    answer_.items = asked_.items;
    answer_.budget = asked_.budget;
    answer_.deadline = asked_.deadline;
    answer_.remarks = asked_.remarks;
    answer_.published = asked_.published;
    if (asked_.here) measure_here(*runs);
    if (runs) read_speeds(*runs);
  }

  SizeAnswer answer() {
    for (const HardwareSheet& sheet : asked_.hardware)
      for (const std::int64_t gpus : asked_.gpus) judge(sheet, gpus);
    std::ranges::stable_sort(answer_.ranked, [](const Sized& a, const Sized& b) {
      const auto order = [](const Sized& each) {
        const auto usd = each.candidate.usd();
        // Without a price, GPU hours stand for it; without an expected figure the upper end, or the lower.
        const auto gpus = static_cast<double>(each.candidate.gpus);
        const auto expected = usd ? each.candidate.expected_usd() : each.candidate.expected_hours;
        const Range range = usd.value_or(scaled(each.candidate.hours, gpus));
        return std::tuple(!usd, !expected, !expected && !range.high,
                          expected ? expected->value * (usd ? 1 : gpus) : range.high.value_or(range.low));
      };
      return order(a) < order(b);
    });
    if (answer_.ranked.empty()) say_what_would();
    return std::move(answer_);
  }

 private:
  void measure_here(const RunSet& runs) {
    Here here = measured_here(runs, asked_.look, answer_.precision, answer_.seq <= 0);
    devices_here_ = here.devices;
    answer_.published.here = std::move(here.reached);
    answer_.remarks.insert(answer_.remarks.end(), here.remarks.begin(), here.remarks.end());
    asked_.hardware.insert(asked_.hardware.begin(), here.sheet);
    asked_.sheets.insert(asked_.sheets.begin(), std::move(here.sheet));  // wins over one that also matches the device
  }

  void read_speeds(const RunSet& runs) {
    const Speeds speeds = speeds_of(runs, answer_.model, answer_.precision, answer_.seq, asked_.sheets);
    asked_.measured.insert(asked_.measured.end(), speeds.measured.begin(), speeds.measured.end());
    for (const std::string& device : speeds.unknown_devices)
      answer_.remarks.push_back(fmt::format("records of {} were not used: no sheet describes it", one_line(device)));
    if (!speeds.measured.empty() || asked_.here) return;
    throw Error(
        fmt::format("size: --from: no figure that counts of {} in {}{} on hardware with a sheet in {}",
                    one_line(answer_.model), answer_.precision,
                    answer_.seq > 0 ? fmt::format(" at seq {}", answer_.seq) : "", fmt::join(asked_.from, ", ")),
        ExitCode::no_data);
  }

  void reject(const HardwareSheet& sheet, std::int64_t gpus, std::string reason, bool judged = true,
              std::optional<std::uint64_t> short_by = std::nullopt) {
    answer_.rejected.push_back({sheet.name, gpus, std::move(reason), judged, short_by});
  }

  std::optional<PyTorchRatio> pytorch_of(const HardwareSheet& sheet) const {
    for (const PyTorchRatio& ratio : answer_.published.beside_pytorch)
      if (ratio.model == answer_.model && ratio.precision == answer_.precision &&
          (ratio.device == "cpu") == (sheet.kind == "cpu"))
        return ratio;
    return std::nullopt;
  }

  void judge(const HardwareSheet& sheet, std::int64_t gpus) {
    if (sheet.name == here_name && gpus > devices_here_) {
      if (asked_.count_given) reject(sheet, gpus, fmt::format("this machine has {}", devices_here_));
      return;
    }
    if (!peak_of(sheet, answer_.precision))
      return reject(sheet, gpus, fmt::format("its sheet has no peak in {}", answer_.precision), false);
    if (!sheet.memory_bytes) return reject(sheet, gpus, "its sheet has no memory_bytes", false);
    parallel::Held held = planner_.on(sheet, gpus);
    if (!held.fits) {
      const std::uint64_t short_by = held.total_bytes - *sheet.memory_bytes;
      return reject(
          sheet, gpus,
          fmt::format("does not hold it: short by {} with micro_batch {}, {}, checkpointing {}{}",
                      format_bytes(static_cast<double>(short_by)), held.micro_batch, layout_text(held),
                      held.checkpointing, answer_.precision == "fp8" && gpus > 1 ? "; ranks do not divide fp8" : ""),
          true, short_by);
    }
    const Published& published = answer_.published;
    Candidate candidate{
        sheet.name, gpus, forecast(sheet, asked_.sheets, asked_.measured, held.work, gpus, published), {}, {}};
    candidate.hours = hours_of(candidate.step, held.work, gpus, answer_.items, published);
    candidate.expected_hours = expected_hours(candidate.step, held.work, gpus, answer_.items, published);
    candidate.offer = cheapest(asked_.prices, sheet, gpus);
    if (beyond_limits(sheet, candidate)) return;
    answer_.ranked.push_back({.candidate = std::move(candidate),
                              .held = std::move(held),
                              .memory_bytes = *sheet.memory_bytes,
                              .pcie = pcie_link(sheet) ? std::optional(*pcie_link(sheet)) : std::nullopt,
                              .pytorch = pytorch_of(sheet)});
  }

  // Whether it surely misses the deadline or the budget, or nobody can say; then it has been rejected.
  bool beyond_limits(const HardwareSheet& sheet, const Candidate& candidate) {
    const double hours = candidate.hours.low;
    if (answer_.deadline && hours > *answer_.deadline) {
      keep_least(hours_needed_, candidate, hours);
      reject(sheet, candidate.gpus,
             fmt::format("takes at least {:.3g} h, {:.3g} beyond the deadline", hours, hours - *answer_.deadline));
      return true;
    }
    if (!answer_.budget) return false;
    const auto usd = candidate.usd();
    if (!usd) {
      reject(sheet, candidate.gpus, "no price is known, so neither is its cost", false);
      return true;
    }
    if (usd->low <= *answer_.budget) return false;
    keep_least(usd_needed_, candidate, usd->low);
    reject(sheet, candidate.gpus,
           fmt::format("costs at least USD {}, {} beyond the budget", format_number(usd->low, 0),
                       format_number(usd->low - *answer_.budget, 0)));
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
    const std::int64_t most = asked_.gpus.back();
    std::optional<std::uint64_t> least_bytes;
    for (const HardwareSheet& sheet : asked_.hardware) {
      if (!peak_of(sheet, answer_.precision) || !sheet.memory_bytes) continue;
      const parallel::Held held = planner_.on(sheet, sheet.name == here_name ? asked_.gpus.front() : most);
      if (held.fits) continue;
      if (const auto more = sheet.name == here_name ? std::nullopt : planner_.fewest_above(sheet, most))
        answer_.would.push_back(fmt::format("{} x {}: --count {}", sheet.name, *more, *more));
      least_bytes = std::min(least_bytes.value_or(held.total_bytes), held.total_bytes);
    }
    const char* divided =
        answer_.precision == "fp8" ? "a precision that ranks divide, such as bf16 (fp8 they do not), or " : "";
    if (answer_.would.empty() && least_bytes)
      answer_.would.push_back(
          fmt::format("{}hardware with {} for each rank", divided, format_bytes(static_cast<double>(*least_bytes))));
    if (least_bytes && !planner_.wider.empty()) answer_.would.push_back("perhaps " + planner_.wider);
    for (const auto& [needed, flag] : {std::pair(&hours_needed_, "--deadline"), std::pair(&usd_needed_, "--max-usd")})
      if (*needed)
        answer_.would.push_back(fmt::format("{} x {}: {} {:.0f}", (*needed)->candidate.hardware,
                                            (*needed)->candidate.gpus, flag, std::ceil((*needed)->amount)));
  }

  SizeRequest asked_;
  const Planner& planner_;
  std::int64_t devices_here_ = 0;
  std::optional<Needed> hours_needed_, usd_needed_;
  SizeAnswer answer_;
};

}  // namespace

SizeAnswer size(SizeRequest request, const RunSet* runs, const Planner& planner) {
  return Sizing(std::move(request), runs, planner).answer();
}

std::string layout_text(const parallel::Held& held) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t ranks) {
    if (ranks > 1) text += fmt::format("{} {}, ", name, ranks);
  };
  add("tp", held.layout.tp), add("pp", held.layout.pp), add("chunks", held.chunks);
  add("ep", held.ep), add("cp", held.cp);
  return text + fmt::format("zero {}{}", held.layout.zero, held.offload == "none" ? "" : ", offload " + held.offload);
}

Range Sized::items_per_gpu() const {
  const Range& seconds = candidate.step.seconds;
  return {seconds.high ? held.work.items / *seconds.high : 0, held.work.items / seconds.low};
}

std::optional<Estimate> Sized::expected_per_gpu() const {
  if (!candidate.step.expected) return std::nullopt;
  const Estimate& seconds = candidate.step.expected->value;
  const Interval ends = seconds.interval.value_or(Interval{seconds.value, seconds.value});
  return Estimate{held.work.items / seconds.value, Interval{held.work.items / ends.high, held.work.items / ends.low}};
}

std::vector<const Sized*> SizeAnswer::best() const {
  std::vector<const Sized*> all;
  for (const Sized& each : ranked)
    if (std::ranges::none_of(all, [&](const Sized* one) { return one->candidate.hardware == each.candidate.hardware; }))
      all.push_back(&each);
  return all;
}

std::optional<std::size_t> SizeAnswer::likely_place(const Sized& sized) const {
  const Candidate& own = sized.candidate;
  if (!own.expected_hours || (ranked.front().candidate.offer && !own.offer)) return std::nullopt;
  return static_cast<std::size_t>(&sized - ranked.data()) + 1;
}

ExitCode SizeAnswer::code() const {
  if (!ranked.empty()) return ExitCode::ok;
  return std::ranges::any_of(rejected, &Rejected::judged) ? ExitCode::failed : ExitCode::no_data;
}

bool surely_within(const Range& range, const std::optional<double>& limit) {
  return limit && range.high && *range.high <= *limit;
}

std::optional<Range> break_even(const SizeAnswer& answer, const Sized& runner_up) {
  const auto first = answer.ranked.front().candidate.usd();
  if (!first || !runner_up.candidate.offer) return std::nullopt;
  return break_even(*first, runner_up.candidate.hours);
}

}  // namespace assay::report::sizing
