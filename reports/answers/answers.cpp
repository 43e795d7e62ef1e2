#include "reports/answers/answers.h"

namespace assay::report {

std::vector<Answer> answers_of(const RunSet& runs, const References& references, const std::vector<Diagnosis>& found,
                               const fitness::CheckResult* floors) {
  return {right_answer(runs), steady_answer(runs, floors), normal_answer(runs, references, floors),
          limit_answer(runs, found)};
}

}  // namespace assay::report
