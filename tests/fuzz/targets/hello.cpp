// What the hook in a job's processes tells the watcher: a hello, and behind lines "---" its stack and bytes of steps.
#include "harness/json/json.h"
#include "harness/json/shared.h"
#include "harness/record/record.h"
#include "harness/watch/ranks.h"
#include "harness/watch/record.h"
#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace assay::fuzz {
namespace {

constexpr std::string_view separator = "\n---\n";

// What stands before the next line "---"; `rest` is then what follows it.
std::string_view part(std::string_view& rest) {
  const std::size_t end = rest.find(separator);
  const std::string_view first = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view() : rest.substr(end + separator.size());
  return first;
}

std::vector<watch::Step> steps_of(std::string_view bytes) {
  std::vector<watch::Step> steps;
  std::array<double, watch::step_numbers> numbers{};
  for (; bytes.size() >= sizeof numbers; bytes.remove_prefix(sizeof numbers)) {
    std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
    if (const auto step = watch::step_from(numbers)) steps.push_back(*step);
  }
  for (const watch::Step& step : steps)
    expect(std::isfinite(step.end) && step.total >= 0 && std::isfinite(step.forward()) && step.syncs >= 0,
           "a step that is none");
  return steps;
}

}  // namespace

void hello(std::string_view input) {
  std::string_view rest = input;
  const std::string text(part(rest)), stack(part(rest));
  const std::string calls = watch::one_line_stack(stack);
  expect(calls.find('\n') == calls.npos, "a stack of several lines");
  const auto info = watch::rank_info_from(text, 3);
  if (!info) return;
  expect(info->pid > 0 && info->rank >= 0 && info->world >= 1 && info->threads >= 1 && info->cpus >= 1 &&
             info->workers >= 0 && info->batch >= 0 && info->stack_signal >= 0,
         "a rank that is none");
  expect(!info->gpu_memory || (std::isfinite(*info->gpu_memory) && *info->gpu_memory >= 0), "no size of memory");
  watch::WatchRequest request;
  request.words = {"job"};
  watch::Seen seen;
  seen.ranks = {*info, *info};
  std::vector<watch::RankSteps> ranks{{info->rank, steps_of(rest)}, {info->rank + 1, steps_of(rest)}};
  std::ranges::reverse(ranks.back().steps);
  seen.steps = watch::steps_of_job(ranks);
  const std::string written = dump_line(watch::record_of(request, seen).to_json());
  JsonPool pool;
  expect(Record::from_text(written, pool).world_ranks == info->world, "a record that cannot be read back");
}

}  // namespace assay::fuzz
