#include "harness/runs/key_figures.h"

#include "harness/core/text.h"
#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t max_figures = 10;

struct Candidate {
  int place = 0;  // in the table
  int worth = 0;  // lower is kept longer
  KeyFigure figure;
};

class Chooser {
 public:
  explicit Chooser(std::vector<const Entry*> entries) : entries_(std::move(entries)) {}

  std::vector<KeyFigure> choose() {
    gemms();
    memory("triad", "bandwidth", 20, 1);
    memory("copy", "bandwidth", 21, 4);
    memory("latency", "latency", 22, 3);
    all_reduce();
    loaders();
    training();
    others();
    std::ranges::stable_sort(found_, {}, &Candidate::worth);
    if (found_.size() > max_figures) found_.resize(max_figures);
    std::ranges::stable_sort(found_, {}, &Candidate::place);
    std::vector<KeyFigure> figures;
    for (Candidate& one : found_) figures.push_back(std::move(one.figure));
    return figures;
  }

 private:
  // The entry of a family with the greatest `rank`; ties go by key, so that the order of entries does not matter.
  template <typename Keep, typename Rank>
  const Entry* best(std::string_view family, const char* metric, Keep keep, Rank rank) const {
    const Entry* found = nullptr;
    for (const Entry* entry : entries_) {
      const Record& record = *entry->record;
      if (record.family != family || !find_metric(record, metric) || !keep(record)) continue;
      if (!found) {
        found = entry;
        continue;
      }
      const auto now = rank(record), before = rank(*found->record);
      if (now > before || (now == before && record.key < found->record->key)) found = entry;
    }
    return found;
  }

  void add(const Entry* entry, const char* metric, int place, int worth, const char* what = nullptr) {
    if (!entry) return;
    const Metric* figure = find_metric(*entry->record, metric);
    if (!figure) return;
    used_.insert(entry->record->family);
    found_.push_back({place, worth, {entry, figure, case_title(*entry->record) + (what ? what : "")}});
  }

  static double value(const Record& record, const char* metric) { return *find_metric(record, metric)->value; }

  // A burst ends before the power limit sets in, so that its figure depends on what ran before: where a product was
  // sustained too, both are shown.
  void gemms() {
    int n = 0;
    for (const char* dtype : {"f32", "bf16", "fp16", "tf32", "fp8", "fp8_e4m3", "int8", "f64"}) {
      const auto best_of = [&](bool sustained) {
        const auto keep = [&](const Record& r) {
          return param_text(r, "dtype") == dtype && (param_text(r, "duration") == "sustained") == sustained;
        };
        return best("gemm", "throughput", keep, [](const Record& r) { return value(r, "throughput"); });
      };
      const Entry *burst = best_of(false), *sustained = best_of(true);
      if (!burst && !sustained) continue;
      const int worth = n < 2 || sustained ? 1 : 4 + n;
      add(burst, "throughput", 2 * n, worth);
      add(sustained, "throughput", 2 * n + 1, worth);
      ++n;
    }
  }

  void memory(const char* op, const char* metric, int place, int worth) {
    add(best(
            "memory", metric, [&](const Record& r) { return param_text(r, "op") == op; },
            [&](const Record& r) { return std::tuple(param_number(r, "bytes").value_or(0), value(r, metric)); }),
        metric, place, worth);
  }

  void all_reduce() {
    add(best(
            "collective", "busbw", [](const Record& r) { return param_text(r, "op") == "all_reduce"; },
            [](const Record& r) {
              return std::tuple(r.world_ranks, param_number(r, "bytes").value_or(0), value(r, "busbw"));
            }),
        "busbw", 25, 1);
  }

  void loaders() {
    int place = 30;
    for (const char* kind : {"image", "token"})
      add(best(
              "dataloader", "throughput",
              [&](const Record& r) { return param_text(r, "kind") == kind && param_text(r, "stage") == "all"; },
              [](const Record& r) { return value(r, "throughput"); }),
          "throughput", place++, kind[0] == 'i' ? 2 : 3);
  }

  // Models by step time, longest first: the largest model says most about a machine.
  void training() {
    std::map<std::string, std::string> families;
    for (const Entry* entry : entries_)
      if (is_training(*entry->record) && entry->record->family != "slice")
        families[param_text(*entry->record, "model")] = entry->record->family;
    std::vector<std::tuple<double, std::string>> models;
    for (const auto& [model, family] : families) {
      double longest = 0;
      for (const Entry* entry : entries_)
        if (param_text(*entry->record, "model") == model)
          if (const Metric* step = find_metric(*entry->record, "step_time")) longest = std::max(longest, *step->value);
      models.push_back({-longest, model});
    }
    std::ranges::sort(models);
    int n = 0;
    for (const auto& [longest, model] : models) {
      const std::string& family = families[model];
      const auto mine = [&model = model](const Record& r) { return param_text(r, "model") == model; };
      const auto quickest = [&](const Record& r) { return mine(r) && !find_metric(r, "time_to_quality"); };
      const Entry* rate = best(family, "throughput", quickest, [](const Record& r) { return value(r, "throughput"); });
      add(rate, "throughput", 40 + 3 * n, n < 2 ? 1 : 4 + n);
      add(rate, "step_time", 41 + 3 * n, n < 1 ? 3 : 5 + n, ", step time");
      add(best(family, "time_to_quality", mine, [](const Record& r) { return -value(r, "time_to_quality"); }),
          "time_to_quality", 42 + 3 * n, n < 2 ? 2 : 4 + n);
      ++n;
    }
  }

  // Families without a rule: the first figure of each, by name; of what was imported with sizes, the largest.
  void others() {
    std::map<std::string, const Entry*> first;
    for (const Entry* entry : entries_) {
      const Record& record = *entry->record;
      if (used_.contains(record.family) || !headline_metric(record)) continue;
      const auto [place, fresh] = first.try_emplace(record.family, entry);
      const auto size = [](const Record& one) {
        return one.family == "imported" ? param_number(one, "bytes").value_or(0) : 0;
      };
      const Record& known = *place->second->record;
      if (!fresh && std::pair(-size(record), record.key) < std::pair(-size(known), known.key)) place->second = entry;
    }
    int place = 100;
    for (const auto& [family, entry] : first)
      found_.push_back({place++, 20, {entry, headline_metric(*entry->record), case_title(*entry->record)}});
  }

  std::vector<const Entry*> entries_;
  std::vector<Candidate> found_;
  std::set<std::string> used_;
};

}  // namespace

std::vector<KeyFigure> key_figures(const MachineRuns& machine) {
  std::vector<const Entry*> entries;
  for (const CaseRuns& one : machine.cases) {
    const Record& record = *one.newest().record;
    if (record.status == Status::ok && record.comparable && !injected(record)) entries.push_back(&one.newest());
  }
  return Chooser(std::move(entries)).choose();
}

}  // namespace assay
