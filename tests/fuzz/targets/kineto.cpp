// Traces of the PyTorch profiler, as `assay import kineto` reads them: one rank, or two that a line "---" parts.
#include "harness/json/json.h"
#include "harness/kineto/job.h"
#include "harness/kineto/reader.h"
#include "harness/kineto/record.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>
#include <optional>
#include <utility>

namespace assay::fuzz {

void kineto(std::string_view input) {
  std::vector<kineto::RankTrace> ranks;
  const std::size_t half = input.find("\n---\n");
  const bool read = accepts("f", [&] {
    for (std::string_view rest : {input.substr(0, half), half == input.npos ? input : input.substr(half + 5)}) {
      if (half == input.npos && !ranks.empty()) break;
      // In small parts, so that a word may be cut anywhere.
      const auto more = [&rest](std::string& text) {
        const std::string_view part = rest.substr(0, 100);
        rest.remove_prefix(part.size());
        text += part;
        return !part.empty();
      };
      ranks.push_back(kineto::read_trace(more, "f"));
    }
  });
  if (!read) return;
  for (const kineto::RankTrace& rank : ranks)
    for (const kineto::TracedStep& step : rank.steps) {
      const double sum = step.data + step.communication + step.compute + step.copies + step.host + step.forward +
                         step.backward + step.optimizer + step.checkpoint;
      expect(std::abs(sum - step.total) <= 1e-6 * step.total + 1e-12, "parts that do not sum to their step");
    }
  std::optional<kineto::Job> job;
  if (!accepts("f", [&] { job = kineto::job_of(std::move(ranks)); })) return;
  const Record record = kineto::record_of(*job, "job");
  for (const auto& [name, seconds] : record.spans)
    expect(std::isfinite(seconds) && seconds >= 0, "a part that is no time");
  (void)dump_line(record.to_json());
}

}  // namespace assay::fuzz
