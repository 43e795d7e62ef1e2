// The answer of `assay size`, as text and as JSON.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "reports/sizing/sizing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace assay::report::sizing {

namespace {

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string name_of(const Candidate& candidate) { return fmt::format("{} x {}", candidate.hardware, candidate.gpus); }

// Three digits: "0.376", "2,040".
std::string figure(double value) {
  const int digits = value > 0 ? static_cast<int>(std::floor(std::log10(value))) : 0;
  const double unit = std::pow(10, digits - 2);
  return format_number(std::round(value / unit) * unit, std::clamp(2 - digits, 0, 6));
}

std::string dollars(double value) { return format_number(value, 2); }

std::string range_text(const Range& range) {
  if (!range.high) return fmt::format("at least {}", figure(range.low));
  const std::string low = figure(range.low), high = figure(*range.high);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

bool surely_within(const Range& range, const std::optional<double>& limit) {
  return limit && range.high && *range.high <= *limit;
}

Json json_of_one(const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  const auto usd = own.usd();
  std::vector<const Candidate*> all;
  for (const Sized& each : answer.ranked) all.push_back(&each.candidate);
  // Null: it may or may not.
  const auto true_or_null = [](bool surely) { return surely ? Json(true) : Json(); };
  Json json = {{"place", place_of(own, all)},
               {"hardware", own.hardware},
               {"gpus", own.gpus},
               {"layout", json_of(sized.held.layout)},
               {"micro_batch", sized.held.micro_batch},
               {"accumulate", sized.held.accumulate},
               {"checkpointing", sized.held.checkpointing},
               {"total_bytes", sized.held.total_bytes},
               {"memory_bytes", sized.memory_bytes},
               {"items_per_gpu_second", to_json(sized.items_per_gpu())},
               {"step_seconds", to_json(own.step.seconds)},
               {"hours", to_json(own.hours)},
               {"usd", json_of(usd)},
               {"within_budget", true_or_null(usd && surely_within(*usd, answer.budget))},
               {"meets_deadline", true_or_null(surely_within(own.hours, answer.deadline))},
               {"basis", sizing::name_of(own.step.basis)},
               {"source", own.step.source},
               {"price", json_of(own.offer)},
               {"assay_over_pytorch", json_of(sized.pytorch)},
               {"not_ordered_with", Json::array()}};
  for (const Sized& other : answer.ranked)
    if (&other != &sized && not_ordered(own, other.candidate))
      json["not_ordered_with"].push_back({{"hardware", other.candidate.hardware}, {"gpus", other.candidate.gpus}});
  return json;
}

Json json_of_share(const PublishedShare& share, const char* figure) {
  return {{figure, {{"low", share.low}, {"high", share.high}}}, {"source", share.source}};
}

std::string price_text(const Candidate& own) {
  const auto usd = own.usd();
  if (!usd) return ", no price is known";
  const Offer& offer = *own.offer;
  const auto age = age_of(offer.date, today());
  return fmt::format(", USD {} ({}{} {}, {}{}USD {} an hour, {})", range_text(*usd),
                     offer.machines > 1 ? fmt::format("{} x ", offer.machines) : "", one_line(offer.machine),
                     offer.owned ? "owned" : "on demand", offer.region.empty() ? "" : one_line(offer.region) + ", ",
                     own.gpus < offer.gpus ? fmt::format("{} GPUs idle, ", offer.gpus - own.gpus) : "",
                     dollars(offer.usd_per_hour),
                     (offer.date.empty() ? "" : "price of ") + dated(offer.date, age) +
                         (age && *age > days_until_old ? ": check it" : ""));
}

std::string sized_text(const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  const parallel::Held& held = sized.held;
  const auto usd = own.usd();
  std::string text = fmt::format("{}: {} h{}", name_of(own), range_text(own.hours), price_text(own));
  if (answer.deadline && !surely_within(own.hours, answer.deadline)) text += "; may miss the deadline";
  if (answer.budget && usd && !surely_within(*usd, answer.budget)) text += "; may exceed the budget";
  const Range speed = sized.items_per_gpu();
  text += fmt::format(
      "\n  holds it with micro_batch {}, zero {}, checkpointing {}: {} of {}\n"
      "  step {} s, {} {} per second on each; {}: {}\n",
      held.micro_batch, held.layout.zero, held.checkpointing, bytes_text(held.total_bytes),
      bytes_text(sized.memory_bytes), range_text(own.step.seconds),
      speed.low > 0 ? range_text(speed) : "at most " + figure(*speed.high), answer.item(),
      sizing::name_of(own.step.basis), one_line(own.step.source, 400));
  if (const auto& ratio = sized.pytorch)
    return text + fmt::format("  Assay over PyTorch: {:.2f} ({:.2f} to {:.2f}; {})\n", ratio->value, ratio->low,
                              ratio->high, ratio->source);
  return text + "  Assay over PyTorch: unknown for this model there\n";
}

std::string order_text(const std::vector<const Sized*>& best, const SizeAnswer& answer) {
  if (best.size() < 2) return {};
  const Candidate& first = best.front()->candidate;
  std::vector<std::string> behind, open, prices_of_others;
  for (const Sized* each : best) {
    if (each == best.front()) continue;
    (surely_before(first, each->candidate) ? behind : open).push_back(name_of(each->candidate));
    const auto price = break_even(answer, *each);
    if (!price || (price->low <= 0 && !price->high)) continue;
    std::vector<std::string> prices;
    if (price->low > 0) prices.push_back("cheaper below USD " + dollars(price->low));
    if (price->high) prices.push_back("dearer above USD " + dollars(*price->high));
    prices_of_others.push_back(fmt::format("{}, now USD {} an hour, is surely {}\n", name_of(each->candidate),
                                           dollars(each->candidate.offer->usd_per_hour), fmt::join(prices, ", ")));
  }
  std::string text = "\n";
  if (!behind.empty())
    text +=
        fmt::format("{} is {} than {}\n", name_of(first), first.offer ? "cheaper" : "faster", fmt::join(behind, ", "));
  if (!open.empty())
    text += fmt::format("not ordered, as their ranges overlap or a price is unknown: {} and {}\n", name_of(first),
                        fmt::join(open, ", "));
  return text + joined(prices_of_others, "");
}

// The same words, up to the first number.
bool alike(const Rejected& a, const Rejected& b) {
  const auto words = [](const std::string& reason) { return reason.substr(0, reason.find_first_of("0123456789")); };
  return a.hardware == b.hardware && words(a.reason) == words(b.reason);
}

std::string rejected_text(const std::vector<Rejected>& rejected) {
  std::string text = rejected.empty() ? "" : "\nnot these:\n";
  for (std::size_t begin = 0, end = 0; begin < rejected.size(); begin = end) {
    const Rejected& first = rejected[begin];
    while (end < rejected.size() && alike(first, rejected[end])) ++end;
    const Rejected& last = rejected[end - 1];
    // The most GPUs that do not suffice: what is missing is least there.
    text += fmt::format("  {} x {}{}: {}\n", first.hardware, end - begin > 1 ? fmt::format("{} to ", first.gpus) : "",
                        last.gpus, last.reason);
  }
  return text;
}

std::string allowances_text(const Published& published) {
  const auto share = [](const char* name, const PublishedShare& of) {
    return fmt::format("  {} {:.3g} to {:.3g} % ({})\n", name, 100 * of.low, 100 * of.high, of.source);
  };
  const PublishedShare& restarts = published.restarts;
  return "\nhours include, on top of all steps:\n" + share("checkpoints", published.checkpoints) +
         share("idle time", published.idle) +
         fmt::format("  restarts: {:.3g} to {:.3g} failures per GPU and hour, each losing {:.3g} h ({})\n",
                     restarts.low, restarts.high, published.hours_lost, restarts.source);
}

}  // namespace

Json to_json(const Range& range) {
  return {{"low", range.low > 0 ? Json(range.low) : Json()}, {"high", json_of(range.high)}};
}

Json to_json(const SizeAnswer& answer) {
  const Published& published = answer.published;
  Json json = {{"schema", 1},
               {"model", answer.model},
               {"precision", answer.precision},
               {"seq", answer.seq > 0 ? Json(answer.seq) : Json()},
               {"items", answer.items},
               {"item", answer.item()},
               {"budget_usd", json_of(answer.budget)},
               {"deadline_hours", json_of(answer.deadline)},
               {"ranked", Json::array()},
               {"rejected", json_of(answer.rejected)},
               {"break_even", Json::array()},
               {"would_fit", answer.would},
               {"remarks", answer.remarks},
               {"allowances",
                {{"checkpoints", json_of_share(published.checkpoints, "share")},
                 {"idle", json_of_share(published.idle, "share")},
                 {"restarts", json_of_share(published.restarts, "per_gpu_hour")}}}};
  json["allowances"]["restarts"]["hours_lost"] = published.hours_lost;
  for (const Sized& each : answer.ranked) {
    json["ranked"].push_back(json_of_one(answer, each));
    const auto price = &each == &answer.ranked.front() ? std::nullopt : break_even(answer, each);
    if (price)
      json["break_even"].push_back({{"hardware", each.candidate.hardware},
                                    {"gpus", each.candidate.gpus},
                                    {"usd_per_hour", to_json(*price)},
                                    {"now", each.candidate.offer->usd_per_hour}});
  }
  return json;
}

std::string to_text(const SizeAnswer& answer) {
  const std::vector<const Sized*> best = answer.best();
  std::string text =
      fmt::format("{}, {} {} in {}{}\n\n", one_line(answer.model), format_number(answer.items, 0), answer.item(),
                  answer.precision, answer.seq > 0 ? fmt::format(", seq {}", answer.seq) : "");
  if (best.empty()) text += "nothing fits\n";
  for (const Sized* each : best) text += sized_text(answer, *each);
  text += order_text(best, answer) + rejected_text(answer.rejected);
  if (!answer.would.empty()) text += fmt::format("\nwhat would: {}\n", fmt::join(answer.would, "\n            "));
  for (const std::string& remark : answer.remarks) text += fmt::format("\n{}\n", remark);
  return best.empty() ? text : text + allowances_text(answer.published);
}

}  // namespace assay::report::sizing
