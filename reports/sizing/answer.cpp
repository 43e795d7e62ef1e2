// The answer of `assay size` as JSON.
#include "harness/json/members.h"
#include "reports/sizing/sizing.h"

#include <cmath>

namespace assay::report::sizing {

namespace {

Json json_of_ends(const std::optional<Estimate>& estimate) {
  if (!estimate) return {};
  const Interval ends = estimate->interval.value_or(Interval{estimate->value, estimate->value});
  return {{"value", estimate->value}, {"low", ends.low}, {"high", ends.high}};
}

// Items per second and GPU, and what follows from them.
Json json_of_expected(const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  if (!own.step.expected) return {};
  const auto usd = own.expected_usd();
  Json json = json_of_ends(sized.expected_per_gpu());
  json["source"] = own.step.expected->source;
  json["step_seconds"] = json_of_ends(own.step.expected->value);
  json["hours"] = json_of_ends(own.expected_hours);
  json["usd"] = json_of_ends(usd);
  json["usd_per_million"] = json_of_ends(usd ? std::optional(scaled(*usd, answer.per_million())) : usd);
  return json;
}

Json json_of_layout(const parallel::Held& held) {
  Json json = json_of(held.layout);
  json["chunks"] = held.chunks, json["ep"] = held.ep, json["cp"] = held.cp;
  return json;
}

// Null without.
Json json_of_offload(const Sized& sized) {
  const parallel::Held& held = sized.held;
  if (held.offload == "none") return {};
  const auto& link = sized.pcie;
  return {{"of", held.offload},
          {"host_bytes", held.host_bytes},
          {"bytes", static_cast<std::uint64_t>(std::ceil(held.work.offloaded))},
          {"link", link ? Json(link->name) : Json()},
          {"seconds_at_least", link ? Json(held.work.offloaded / link->bytes_per_second) : Json()}};
}

Json json_of_one(const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  const auto usd = own.usd();
  std::vector<const Candidate*> all;
  for (const Sized& each : answer.ranked) all.push_back(&each.candidate);
  // Null: it may or may not.
  const auto true_or_null = [](bool surely) { return surely ? Json(true) : Json(); };
  Json json = {{"place", place_of(own, all)},
               {"likely_place", json_of(answer.likely_place(sized))},
               {"hardware", own.hardware},
               {"gpus", own.gpus},
               {"layout", json_of_layout(sized.held)},
               {"micro_batch", sized.held.micro_batch},
               {"accumulate", sized.held.accumulate},
               {"checkpointing", sized.held.checkpointing},
               {"total_bytes", sized.held.total_bytes},
               {"memory_bytes", sized.memory_bytes},
               {"offload", json_of_offload(sized)},
               {"communication", json_of(sized.held.sent)},
               {"bubble", sized.held.bubble},
               {"items_per_gpu_second", to_json(sized.items_per_gpu())},
               {"step_seconds", to_json(own.step.seconds)},
               {"hours", to_json(own.hours)},
               {"usd", json_of(usd)},
               {"usd_per_million", usd ? to_json(scaled(*usd, answer.per_million())) : Json()},
               {"expected", json_of_expected(answer, sized)},
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

}  // namespace assay::report::sizing
