// The answer of `assay size` for people.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/model/cells.h"
#include "reports/sizing/sizing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace assay::report::sizing {

namespace {

constexpr std::size_t max_in_terminal = 40;  // rows

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

std::string ends_text(const Estimate& estimate) {
  return estimate.interval ? range_text({estimate.interval->low, estimate.interval->high}) : figure(estimate.value);
}

Cell figure_cell(const std::optional<double>& value) {
  if (!value) return unknown_cell();
  Cell cell = text_cell(figure(*value));
  cell.sort = *value;
  return cell;
}

Cell range_cell(const Range& range) {
  Cell cell = text_cell(range_text(range));
  cell.sort = range.low;
  return cell;
}

std::optional<double> value_of(const std::optional<Estimate>& estimate) {
  return estimate ? std::optional(estimate->value) : std::nullopt;
}

Table table_of(const SizeAnswer& answer, const std::vector<const Sized*>& shown) {
  const bool tokens = answer.seq > 0;
  Table table{"sizes",
              "",
              {{"hardware"},
               right("gpus", "GPUs"),
               right("likely_place", "likely"),
               right("items_per_gpu_second", tokens ? "tokens/s a GPU" : "images/s a GPU"),
               right("hours"),
               right("hours_range", "range"),
               right("hours_bounds", "bounds"),
               right("usd", "USD"),
               right("usd_per_million", tokens ? "USD/M tokens" : "USD/M images")}};
  for (const Sized* each : shown) {
    const Candidate& own = each->candidate;
    const auto usd = own.expected_usd();
    const auto place = answer.likely_place(*each);
    table.rows.push_back({text_cell(own.hardware), count_cell(own.gpus),
                          place ? count_cell(static_cast<std::int64_t>(*place)) : unknown_cell(),
                          figure_cell(value_of(each->expected_per_gpu())), figure_cell(value_of(own.expected_hours)),
                          own.expected_hours ? text_cell(ends_text(*own.expected_hours)) : unknown_cell(),
                          range_cell(own.hours), figure_cell(value_of(usd)),
                          figure_cell(usd ? std::optional(usd->value * answer.per_million()) : std::nullopt)});
  }
  return table;
}

// Expected cost or, without prices, hours.
Bars bars_of(const std::vector<const Sized*>& shown, bool priced) {
  Bars bars{"likely",
            priced ? "Expected USD" : "Expected hours",
            "Bar: what is expected; whiskers: its range. All bars have one scale.",
            {},
            {}};
  std::vector<Estimate> figures;
  const auto expected = [&](const Sized* each) {
    return priced ? each->candidate.expected_usd() : each->candidate.expected_hours;
  };
  for (const Sized* each : shown)
    if (const auto all = expected(each)) figures.push_back(*all);
  if (figures.empty()) return bars;
  const double end = 1.05 * std::ranges::max(shown_values(figures, true));
  for (const Sized* each : shown)
    if (const auto all = expected(each))
      bars.rows.push_back({name_of(each->candidate),
                           fmt::format("{} ({})", figure(all->value), ends_text(*all)),
                           {all->value / end},
                           scaled(all->interval, 1 / end)});
  return bars;
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

// "a rank sends in a step: ep 4.2 GiB over NVLink 4, at least 10 ms; dp 30 GiB between hosts"
std::string sent_text(const parallel::Held& held) {
  std::vector<std::string> texts;
  for (const parallel::Sent& each : held.sent)
    texts.push_back(fmt::format(
        "{} {} {}", each.group, bytes_text(each.bytes),
        each.seconds ? fmt::format("over {}, at least {}", each.link, format_seconds(*each.seconds)) : each.link));
  return texts.empty() ? "" : fmt::format("a rank sends in a step: {}", fmt::join(texts, "; "));
}

void add_details(Section& section, const SizeAnswer& answer, const Sized& sized) {
  const Candidate& own = sized.candidate;
  const parallel::Held& held = sized.held;
  const auto usd = own.usd();
  std::string text = fmt::format("{}: {} h{}", name_of(own), range_text(own.hours), price_text(own));
  if (answer.deadline && !surely_within(own.hours, answer.deadline)) text += "; may miss the deadline";
  if (answer.budget && usd && !surely_within(*usd, answer.budget)) text += "; may exceed the budget";
  const Range speed = sized.items_per_gpu();
  List details{"of_" + own.hardware, {}};
  const auto& expected = own.step.expected;
  details.items = {
      expected ? fmt::format("expected: step {} s ({}); {}", figure(expected->value.value), ends_text(expected->value),
                             one_line(expected->source, 400))
               : "expected: unknown; nothing like it is published",
      fmt::format("bounds: step {} s, {} {} per second on each; {}: {}", range_text(own.step.seconds),
                  speed.low > 0 ? range_text(speed) : "at most " + figure(*speed.high), answer.item(),
                  sizing::name_of(own.step.basis), one_line(own.step.source, 400)),
      fmt::format("holds it with micro_batch {}, {}, checkpointing {}: {} of {}", held.micro_batch, layout_text(held),
                  held.checkpointing, bytes_text(held.total_bytes), bytes_text(sized.memory_bytes))};
  if (const std::string sent = sent_text(held); !sent.empty()) details.items.push_back(sent);
  if (held.offload != "none")
    details.items.push_back(
        fmt::format("offload {}: {} of a rank in the host's memory, {} a step {}", held.offload,
                    bytes_text(held.host_bytes), format_bytes(held.work.offloaded),
                    sized.pcie ? fmt::format("over {}, at least {}", sized.pcie->name,
                                             format_seconds(held.work.offloaded / sized.pcie->bytes_per_second))
                               : "over a link that the sheet does not give"));
  const auto& ratio = sized.pytorch;
  details.items.push_back(ratio ? fmt::format("Assay over PyTorch: {:.2f} ({:.2f} to {:.2f}; {})", ratio->value,
                                              ratio->low, ratio->high, ratio->source)
                                : "Assay over PyTorch: unknown for this model there");
  section.blocks.insert(section.blocks.end(), {Text{std::move(text)}, std::move(details)});
}

// "Likely cheapest: h100-sxm x 8, USD 19,100 (12,000 to 28,000); then a100-sxm-80gb x 8, 10 % more."
std::string likely_text(const std::vector<const Sized*>& best) {
  std::vector<const Sized*> known;
  const bool priced = best.front()->candidate.offer.has_value();
  const auto expected = [&](const Sized* each) {
    const Candidate& own = each->candidate;
    if (priced || !own.expected_hours) return own.expected_usd();
    return std::optional(scaled(*own.expected_hours, static_cast<double>(own.gpus)));
  };
  std::ranges::copy_if(best, std::back_inserter(known), [&](const Sized* each) {
    return expected(each).has_value() && each->candidate.offer.has_value() == priced;
  });
  if (known.empty()) return {};
  const Estimate first = *expected(known[0]);
  std::string text =
      fmt::format("{}: {}, {} ({})", priced ? "Likely cheapest" : "Likely fewest GPU hours, as no price is known",
                  name_of(known[0]->candidate), (priced ? "USD " : "") + figure(first.value), ends_text(first));
  if (known.size() < 2) return text + ".";
  const Estimate second = *expected(known[1]);
  text += fmt::format("; then {}, {:.0f} % more", name_of(known[1]->candidate), 100 * (second.value / first.value - 1));
  const bool apart = first.interval && second.interval && first.interval->high < second.interval->low;
  return text + (apart ? "." : "; their ranges overlap, so it may be the other way round.");
}

std::vector<Block> order_of(const std::vector<const Sized*>& best, const SizeAnswer& answer) {
  if (best.size() < 2) return {};
  const Candidate& first = best.front()->candidate;
  std::vector<std::string> behind, before, open;
  std::vector<Block> prices_of_others, all;
  for (const Sized* each : best) {
    if (each == best.front()) continue;
    (surely_before(first, each->candidate)   ? behind
     : surely_before(each->candidate, first) ? before
                                             : open)
        .push_back(name_of(each->candidate));
    const auto price = break_even(answer, *each);
    if (!price || (price->low <= 0 && !price->high)) continue;
    std::vector<std::string> prices;
    if (price->low > 0) prices.push_back("cheaper below USD " + dollars(price->low));
    if (price->high) prices.push_back("dearer above USD " + dollars(*price->high));
    prices_of_others.push_back(
        Text{fmt::format("{}, now USD {} an hour, is surely {}", name_of(each->candidate),
                         dollars(each->candidate.offer->usd_per_hour), fmt::join(prices, ", "))});
  }
  const char* word = first.offer ? "cheaper" : "faster";
  if (!behind.empty())
    all.push_back(Text{fmt::format("surely: {} is {} than {}", name_of(first), word, fmt::join(behind, ", "))});
  if (!before.empty())
    all.push_back(Text{fmt::format("surely {} than {}: {}", word, name_of(first), fmt::join(before, ", "))});
  if (!open.empty())
    all.push_back(Text{fmt::format("not surely ordered, as their bounds overlap or a price is unknown: {} and {}",
                                   name_of(first), fmt::join(open, ", "))});
  all.insert(all.end(), prices_of_others.begin(), prices_of_others.end());
  return all;
}

// The same words, up to the first number.
bool alike(const Rejected& a, const Rejected& b) {
  const auto words = [](const std::string& reason) { return reason.substr(0, reason.find_first_of("0123456789")); };
  return a.hardware == b.hardware && words(a.reason) == words(b.reason);
}

std::vector<std::string> rejected_lines(const std::vector<Rejected>& rejected) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin < rejected.size(); begin = end) {
    const Rejected& first = rejected[begin];
    while (end < rejected.size() && alike(first, rejected[end])) ++end;
    const Rejected& last = rejected[end - 1];
    // The most GPUs that do not suffice: what is missing is least there.
    lines.push_back(fmt::format("{} x {}{}: {}", first.hardware,
                                end - begin > 1 ? fmt::format("{} to ", first.gpus) : "", last.gpus, last.reason));
  }
  return lines;
}

std::vector<std::string> allowances_of(const Published& published) {
  const auto share = [](const char* name, const PublishedShare& of) {
    return fmt::format("{} {:.3g} to {:.3g} % ({})", name, 100 * of.low, 100 * of.high, of.source);
  };
  const PublishedShare& restarts = published.restarts;
  return {share("checkpoints", published.checkpoints), share("idle time", published.idle),
          fmt::format("restarts: {:.3g} to {:.3g} failures per GPU and hour, each losing {:.3g} h ({})", restarts.low,
                      restarts.high, published.hours_lost, restarts.source)};
}

}  // namespace

Document document_of(const SizeAnswer& answer) {
  const std::vector<const Sized*> best = answer.best();
  Document document;
  document.title = "Which machine, and how many";
  document.headline =
      fmt::format("{}, {} {} in {}{}", one_line(answer.model), format_number(answer.items, 0), answer.item(),
                  answer.precision, answer.seq > 0 ? fmt::format(", seq {}", answer.seq) : "");
  const auto add = [&](std::string id, std::string title, std::vector<Block> blocks, bool in_terminal = true) {
    if (!blocks.empty()) document.sections.push_back({std::move(id), std::move(title), std::move(blocks), in_terminal});
  };
  if (best.empty()) {
    add("answer", "", {Text{"nothing fits", Tone::bad}});
  } else {
    std::vector<const Sized*> all;
    for (const Sized& each : answer.ranked) all.push_back(&each);
    const bool few = all.size() <= max_in_terminal;
    std::vector<Block> head;
    if (const std::string text = likely_text(best); !text.empty()) head.push_back(Text{text});
    if (const Bars bars = bars_of(best, best.front()->candidate.offer.has_value()); !bars.rows.empty())
      head.push_back(bars);
    const std::string title =
        fmt::format("Likely order, by what is expected{}", few ? "" : ": the best of each hardware");
    head.push_back(table_of(answer, few ? all : best));
    if (!few)
      head.push_back(
          Text{fmt::format("{} numbers of GPUs are left out; all are in --json, --html, --md, or name "
                           "fewer by --hardware and --count",
                           all.size() - best.size())});
    add("answer", title, std::move(head));
    if (!few) add("all", "All numbers of GPUs", {table_of(answer, all)}, false);
    add("order", "What is sure", order_of(best, answer));
    Section details{"details", "Where the figures come from", {}};
    for (const Sized* each : best) add_details(details, answer, *each);
    document.sections.push_back(std::move(details));
  }
  if (!answer.rejected.empty()) add("rejected", "Not these", {List{"rejected", rejected_lines(answer.rejected)}});
  if (!answer.would.empty()) add("would", "What would", {List{"would_fit", answer.would}});
  if (!answer.remarks.empty()) add("remarks", "Remarks", {List{"remarks", answer.remarks}});
  if (!best.empty())
    add("allowances", "Hours include, on top of all steps", {List{"allowances", allowances_of(answer.published)}});
  return document;
}

}  // namespace assay::report::sizing
