#include "cli/size_answer.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace assay::cli {

namespace {

using namespace report::sizing;

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string name_of(const Candidate& candidate) { return fmt::format("{} x {}", candidate.hardware, candidate.gpus); }

// Three digits: "0.376", "2,040".
std::string figure(double value) {
  const int digits = value > 0 ? static_cast<int>(std::floor(std::log10(value))) : 0;
  const double unit = std::pow(10, digits - 2);
  return format_number(std::round(value / unit) * unit, std::clamp(2 - digits, 0, 6));
}

std::string dollars(double value) { return format_number(value, 2); }

std::string text_of(const Range& range) {
  if (!range.high) return fmt::format("at least {}", figure(range.low));
  const std::string low = figure(range.low), high = figure(*range.high);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

// A low end of 0 is unknown: that of a speed or a price without a highest time.
Json json_of(const Range& range) {
  return {{"low", range.low > 0 ? Json(range.low) : Json()}, {"high", range.high ? Json(*range.high) : Json()}};
}

Range items_per_gpu(const Sized& sized) {
  const Range& seconds = sized.candidate.step.seconds;
  return {seconds.high ? sized.work.items / *seconds.high : 0, sized.work.items / seconds.low};
}

const char* items_of(const SizeAnswer& answer) { return answer.seq > 0 ? "tokens" : "images"; }

std::vector<const Candidate*> candidates_of(const SizeAnswer& answer) {
  std::vector<const Candidate*> all;
  for (const Sized& each : answer.ranked) all.push_back(&each.candidate);
  return all;
}

Json json_of(const Offer& offer) {
  return {{"machine", offer.machine},
          {"provider", offer.provider},
          {"region", offer.region},
          {"gpus", offer.gpus},
          {"machines", offer.machines},
          {"usd_per_hour", offer.usd_per_hour},
          {"owned", offer.owned},
          {"source", offer.source},
          {"date", offer.date.empty() ? Json() : Json(offer.date)}};
}

Json json_of(const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  const parallel::Layout& layout = sized.estimate.layout;
  const auto usd = own.usd();
  Json json = {{"place", place_of(own, candidates_of(answer))}, {"hardware", own.hardware}, {"gpus", own.gpus}};
  json["layout"] = {{"dp", layout.dp}, {"tp", layout.tp}, {"pp", layout.pp}, {"zero", layout.zero}};
  json["micro_batch"] = sized.estimate.settings.micro_batch;
  json["accumulate"] = sized.estimate.settings.accumulate;
  json["checkpointing"] = word_of(sized.estimate.settings.checkpointing);
  json["total_bytes"] = sized.estimate.total();
  json["memory_bytes"] = sized.memory_bytes;
  json["items_per_gpu_second"] = json_of(items_per_gpu(sized));
  json["step_seconds"] = json_of(own.step.seconds);
  json["hours"] = json_of(own.hours);
  json["usd"] = usd ? json_of(*usd) : Json();
  // Null: it may or may not.
  const auto within = [](const Range& range, const std::optional<double>& limit) {
    return limit && range.high && *range.high <= *limit ? Json(true) : Json();
  };
  json["within_budget"] = usd ? within(*usd, answer.budget) : Json();
  json["meets_deadline"] = within(own.hours, answer.deadline);
  json["basis"] = report::sizing::name_of(own.step.basis);
  json["source"] = own.step.source;
  json["price"] = own.offer ? json_of(*own.offer) : Json();
  json["assay_over_pytorch"] = nullptr;
  if (const auto& ratio = sized.pytorch)
    json["assay_over_pytorch"] = {
        {"value", ratio->value}, {"low", ratio->low}, {"high", ratio->high}, {"source", ratio->source}};
  json["not_ordered_with"] = Json::array();
  for (const Sized& other : answer.ranked)
    if (&other != &sized && not_ordered(own, other.candidate))
      json["not_ordered_with"].push_back({{"hardware", other.candidate.hardware}, {"gpus", other.candidate.gpus}});
  return json;
}

Json json_of(const PublishedShare& share, const char* figure) {
  return {{figure, {{"low", share.low}, {"high", share.high}}}, {"source", share.source}};
}

void print_one(const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  fmt::print("{}: {} h", name_of(own), text_of(own.hours));
  if (const auto usd = own.usd()) {
    fmt::print(
        ", USD {} ({}{} {}, {}{}USD {} an hour, {})", text_of(*usd),
        own.offer->machines > 1 ? fmt::format("{} x ", own.offer->machines) : "", one_line(own.offer->machine),
        own.offer->owned ? "owned" : "on demand", own.offer->region.empty() ? "" : one_line(own.offer->region) + ", ",
        own.gpus < own.offer->gpus ? fmt::format("{} GPUs idle, ", own.offer->gpus - own.gpus) : "",
        dollars(own.offer->usd_per_hour), own.offer->date.empty() ? "of unknown date" : "price of " + own.offer->date);
  } else {
    fmt::print(", no price is known");
  }
  if (answer.deadline && !(own.hours.high && *own.hours.high <= *answer.deadline))
    fmt::print("; may miss the deadline");
  if (const auto usd = own.usd(); answer.budget && usd && !(usd->high && *usd->high <= *answer.budget))
    fmt::print("; may exceed the budget");
  const parallel::Layout& layout = sized.estimate.layout;
  fmt::print("\n  holds it with micro_batch {}, zero {}, checkpointing {}: {} of {}\n",
             sized.estimate.settings.micro_batch, layout.zero, word_of(sized.estimate.settings.checkpointing),
             bytes_text(sized.estimate.total()), bytes_text(sized.memory_bytes));
  const Range speed = items_per_gpu(sized);
  fmt::print("  step {} s, {} {} per second on each; {}: {}\n", text_of(own.step.seconds),
             speed.low > 0 ? text_of(speed) : "at most " + figure(*speed.high), items_of(answer),
             report::sizing::name_of(own.step.basis), one_line(own.step.source, 400));
  if (const auto& ratio = sized.pytorch)
    fmt::print("  Assay over PyTorch: {:.2f} ({:.2f} to {:.2f}; {})\n", ratio->value, ratio->low, ratio->high,
               ratio->source);
  else
    fmt::print("  Assay over PyTorch: unknown for this model there\n");
}

void print_order(const std::vector<const Sized*>& best, const SizeAnswer& answer) {
  if (best.size() < 2) return;
  const Candidate& first = best.front()->candidate;
  const char* better = first.offer ? "cheaper" : "faster";
  std::vector<std::string> behind, open;
  for (const Sized* each : best)
    if (each != best.front())
      (surely_before(first, each->candidate) ? behind : open).push_back(name_of(each->candidate));
  fmt::print("\n");
  if (!behind.empty()) fmt::print("{} is {} than {}\n", name_of(first), better, fmt::join(behind, ", "));
  if (!open.empty())
    fmt::print("not ordered, as their ranges overlap or a price is unknown: {} and {}\n", name_of(first),
               fmt::join(open, ", "));
  for (const Sized* each : best) {
    if (each == best.front()) continue;
    const auto price = break_even(answer, *each);
    if (!price || (price->low <= 0 && !price->high)) continue;
    std::vector<std::string> prices;
    if (price->low > 0) prices.push_back("cheaper below USD " + dollars(price->low));
    if (price->high) prices.push_back("dearer above USD " + dollars(*price->high));
    fmt::print("{}, now USD {} an hour, is surely {}\n", name_of(each->candidate),
               dollars(each->candidate.offer->usd_per_hour), fmt::join(prices, ", "));
  }
}

// The same words, up to the first number.
bool alike(const Rejected& a, const Rejected& b) {
  const auto words = [](const std::string& reason) { return reason.substr(0, reason.find_first_of("0123456789")); };
  return a.hardware == b.hardware && words(a.reason) == words(b.reason);
}

void print_rejected(const SizeAnswer& answer) {
  if (answer.rejected.empty()) return;
  fmt::print("\nnot these:\n");
  for (std::size_t begin = 0, end = 0; begin < answer.rejected.size(); begin = end) {
    const Rejected& first = answer.rejected[begin];
    while (end < answer.rejected.size() && alike(first, answer.rejected[end])) ++end;
    const Rejected& last = answer.rejected[end - 1];
    // The most GPUs that do not suffice: what is missing is least there.
    fmt::print("  {} x {}{}: {}\n", first.hardware, end - begin > 1 ? fmt::format("{} to ", first.gpus) : "", last.gpus,
               last.reason);
  }
}

}  // namespace

std::vector<const Sized*> SizeAnswer::best() const {
  std::vector<const Sized*> all;
  for (const Sized& each : ranked)
    if (std::none_of(all.begin(), all.end(),
                     [&](const Sized* one) { return one->candidate.hardware == each.candidate.hardware; }))
      all.push_back(&each);
  return all;
}

std::optional<Range> break_even(const SizeAnswer& answer, const Sized& runner_up) {
  const auto first = answer.ranked.front().candidate.usd();
  if (!first || !runner_up.candidate.offer) return std::nullopt;
  return report::sizing::break_even(*first, runner_up.candidate.hours);
}

Json to_json(const SizeAnswer& answer) {
  const auto known = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json json = {{"schema", 1},
               {"model", answer.model},
               {"precision", answer.precision},
               {"seq", answer.seq > 0 ? Json(answer.seq) : Json()},
               {"items", answer.items},
               {"item", items_of(answer)},
               {"budget_usd", known(answer.budget)},
               {"deadline_hours", known(answer.deadline)}};
  json["ranked"] = json["rejected"] = json["break_even"] = Json::array();
  for (const Sized& each : answer.ranked) json["ranked"].push_back(json_of(answer, each));
  for (const Rejected& each : answer.rejected)
    json["rejected"].push_back({{"hardware", each.hardware},
                                {"gpus", each.gpus},
                                {"reason", each.reason},
                                {"judged", each.judged},
                                {"short_by_bytes", each.short_by_bytes ? Json(*each.short_by_bytes) : Json()}});
  for (std::size_t i = 1; i < answer.ranked.size(); ++i)
    if (const auto price = break_even(answer, answer.ranked[i]))
      json["break_even"].push_back({{"hardware", answer.ranked[i].candidate.hardware},
                                    {"gpus", answer.ranked[i].candidate.gpus},
                                    {"usd_per_hour", json_of(*price)},
                                    {"now", answer.ranked[i].candidate.offer->usd_per_hour}});
  json["would_fit"] = answer.would;
  json["remarks"] = answer.remarks;
  const Published& published = answer.published;
  json["allowances"] = {{"checkpoints", json_of(published.checkpoints, "share")},
                        {"idle", json_of(published.idle, "share")},
                        {"restarts", json_of(published.restarts, "per_gpu_hour")}};
  json["allowances"]["restarts"]["hours_lost"] = published.hours_lost;
  return json;
}

void print(const SizeAnswer& answer) {
  const std::vector<const Sized*> best = answer.best();
  fmt::print("{}, {} {} in {}{}\n\n", one_line(answer.model), format_number(answer.items, 0), items_of(answer),
             answer.precision, answer.seq > 0 ? fmt::format(", seq {}", answer.seq) : "");
  if (best.empty()) fmt::print("nothing fits\n");
  for (const Sized* each : best) print_one(answer, *each);
  print_order(best, answer);
  print_rejected(answer);
  if (!answer.would.empty()) fmt::print("\nwhat would: {}\n", fmt::join(answer.would, "\n            "));
  for (const std::string& remark : answer.remarks) fmt::print("\n{}\n", remark);
  if (best.empty()) return;
  const Published& published = answer.published;
  const auto percent = [](const PublishedShare& share) {
    return fmt::format("{:.3g} to {:.3g} %", 100 * share.low, 100 * share.high);
  };
  fmt::print("\nhours include, on top of all steps:\n");
  fmt::print("  checkpoints {} ({})\n", percent(published.checkpoints), published.checkpoints.source);
  fmt::print("  idle time {} ({})\n", percent(published.idle), published.idle.source);
  fmt::print("  restarts: {:.3g} to {:.3g} failures per GPU and hour, each losing {:.3g} h ({})\n",
             published.restarts.low, published.restarts.high, published.hours_lost, published.restarts.source);
}

}  // namespace assay::cli
