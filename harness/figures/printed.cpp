#include "harness/figures/printed.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/figures/mentions.h"
#include "harness/figures/quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace assay {

const char* const metric_grammar =
    "NAME is a figure that the output names anywhere: \"NAME: 5 GB/s\", \"NAME=5\", \"NAME 5 s\",\n"
    "\"NAME 5 s lower\", a member of JSON; gbench:NAME:METRIC is one of Google Benchmark's JSON.\n"
    "Several values of a NAME are samples of one run. docs/ab.md has the rules.";

namespace {

bool fits(const Mention& one, const WantedFigure& wanted) {
  return !(one.unit && wanted.unit && !in_unit(1, *one.unit, *wanted.unit)) &&
         !(one.better && wanted.better && one.better != wanted.better);
}

std::string described(const Mention& one) {
  return in_quotes(one.name) + (one.unit ? " in " + *one.unit : "") +
         (one.better ? fmt::format(" (better when {})", word_of(*one.better)) : "");
}

// At most five, each once.
template <typename Describe>
std::string listed(const std::vector<Mention>& all, const Describe& describe) {
  std::vector<std::string> texts;
  for (const Mention& one : all)
    if (const std::string text = describe(one); std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  const bool more = texts.size() > 5;
  if (more) texts.resize(5);
  return fmt::format("{}{}", fmt::join(texts, ", "), more ? ", ..." : "");
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Keeps the mentions with the name as a whole, or else those that end in it.
std::vector<Mention> meant(const std::vector<Mention>& all, const WantedFigure& wanted, NameMatch at_least) {
  std::vector<Mention> whole, ending;
  for (const Mention& one : all) {
    NameMatch best = NameMatch::none;
    for (const std::string& name : wanted.names) best = std::max(best, match_of(one, name));
    if (best >= at_least && !one.prose) (best == NameMatch::whole ? whole : ending).push_back(one);
  }
  return whole.empty() ? ending : whole;
}

std::vector<Mention> candidates(const Mentions& found, const WantedFigure& wanted) {
  return meant(found.all, wanted, wanted.exact ? NameMatch::whole : NameMatch::end);
}

[[noreturn]] void refuse_missing(const CommandOutput& output, const WantedFigure& wanted, const std::string& place) {
  const Mentions found = mentions_of(output.text, wanted.names);
  const std::string& name = wanted.names.front();
  if (const auto others = candidates(found, wanted); !others.empty())
    throw UsageError(fmt::format("{} has no {}, but {}", place,
                                 described({name, 0, {}, false, wanted.unit, wanted.better}),
                                 listed(others, described)));
  if (const auto prose = std::ranges::find_if(found.all, &Mention::prose); prose != found.all.end())
    throw UsageError(fmt::format("{} has no number behind {}: {}", place, in_quotes(prose->name), prose->not_a_number));
  std::string printed = suggestion(name, printed_names(output.text));
  if (printed.empty())
    printed = fmt::format("; the last line of its output is {}",
                          found.last_line.empty() ? "nothing" : in_quotes(found.last_line));
  const bool two = wanted.names.size() > 1 && !wanted.names.back().starts_with("gbench:");
  throw UsageError(fmt::format("{} has no figure {}{}{}{}", place, in_quotes(name),
                               two ? " or " + in_quotes(wanted.names.back()) : "", printed,
                               output.whole ? "" : "; only its end was read, as it was too long"));
}

PrintedFigure joined(const std::vector<Mention>& all, const std::string& place) {
  const Mention& first = all.front();
  PrintedFigure figure{first.name, 0, {}, first.unit, first.better, first.case_name, first.metric, {}};
  for (const Mention& one : all) {
    if (one.name != first.name)
      throw UsageError(fmt::format("{} has several figures of this name: {}; name one of them", place,
                                   listed(all, [](const Mention& each) { return in_quotes(each.name); })));
    if (!one.not_a_number.empty())
      throw UsageError(fmt::format("{}: {} has no number: it is {}", place, in_quotes(one.name), one.not_a_number));
    const auto value = one.unit && first.unit   ? in_unit(one.value, *one.unit, *first.unit)
                       : one.unit == first.unit ? std::optional(one.value)
                                                : std::nullopt;
    if (!value || (one.better && figure.better && one.better != figure.better))
      throw UsageError(fmt::format("{}: {} has several units or directions: {}", place, in_quotes(one.name),
                                   listed(all, described)));
    if (one.better) figure.better = one.better;
    figure.values.push_back(*value);
  }
  figure.value = median(figure.values);
  return figure;
}

}  // namespace

PrintedFigure printed_figure(const CommandOutput& output, const WantedFigure& wanted, const std::string& place) {
  if (const auto found = find_figure(output, wanted, place)) return *found;
  refuse_missing(output, wanted, place);
}

std::optional<PrintedFigure> find_figure(const CommandOutput& output, const WantedFigure& wanted,
                                         const std::string& place) {
  const Mentions found = mentions_of(output.text, wanted.names);
  const std::string name = in_quotes(wanted.names.front());
  const std::string cut = output.whole ? "" : fmt::format("{} was too long: only its end was read", place);
  const auto whole = meant(found.all, wanted, NameMatch::whole);
  const auto last = [&](auto&& is_meant) {
    const auto one = std::ranges::find_if(found.last, [&](const Mention& each) { return is_meant(each.name); });
    return one == found.last.end() ? nullptr : &*one;
  };
  const Mention* const named = last([&](const std::string& member) { return is_among(wanted.names, member); });
  const Mention* const value =
      last([&](const std::string& member) { return member == "value" && !named && !wanted.exact; });
  const bool other = value && !value->metric.empty() && !is_among(wanted.names, value->metric);
  if (named || (value && (!other || whole.empty()))) {
    PrintedFigure figure = joined({named ? *named : *value}, place);
    figure.remark = cut;
    if (other)
      figure.remark = fmt::format("{} has no {}: its last line's value is taken, which it calls {}", place, name,
                                  in_quotes(value->metric));
    else if (whole.size() > (named ? 1 : 0))
      figure.remark = fmt::format("{} has {} more than once: only its last line counts", place, name);
    return figure;
  }
  std::vector<Mention> fitting = candidates(found, wanted);
  std::erase_if(fitting, [&](const Mention& one) { return !fits(one, wanted); });
  if (fitting.empty()) return std::nullopt;
  PrintedFigure figure = joined(fitting, place);
  figure.remark = cut;
  return figure;
}

PrintedFigure named_figure(const CommandOutput& output, const std::string& name, std::optional<Better> better,
                           const std::string& place) {
  PrintedFigure figure = printed_figure(output, {{name}}, place);
  figure.name = name.starts_with("gbench:") ? figure.case_name : name;
  if (!name.starts_with("gbench:")) figure.metric.clear();
  const std::string what = fmt::format("{}: {}", place, in_quotes(name));
  if (figure.better && better && *figure.better != *better)
    throw UsageError(
        fmt::format("{} is better when {}, says the output, not {}", what, word_of(*figure.better), word_of(*better)));
  if (!figure.better) figure.better = better;
  const auto base = base_unit(figure.unit.value_or(""));
  if (!figure.better && base && (base->name == "s" || base->name.starts_with("s/"))) figure.better = Better::lower;
  if (!figure.better && base && base->name.ends_with("/s")) figure.better = Better::higher;
  if (!figure.better)
    throw UsageError(
        fmt::format("{}: which way does it count? Print \"better\": \"higher\" or \"lower\", or a unit of "
                    "time or per second, or give --better",
                    what));
  if (!figure.unit) figure.unit = "1";
  return figure;
}

}  // namespace assay
