// Checkouts of commits that are built, kept from one night to the next.
#pragma once

#include "harness/history/repository.h"
#include "harness/process/run.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace assay::history {

class Builds {
 public:
  using Run = std::function<FinishedProcess(const ProcessRun&)>;

  // `folder` is made if it is not there, and keeps the checkouts that were used last. `run` runs `command`, the build,
  // in a checkout.
  Builds(const Repository& repository, std::filesystem::path folder, std::string command, Run run);

  // The commit's checkout, built now or before by the same command. Absent if it does not build, or not within the
  // limit: problem() then says why.
  std::optional<std::filesystem::path> of(const std::string& commit, double limit_seconds);
  const std::string& problem() const { return problem_; }

 private:
  void remove_old() const;

  const Repository& repository_;
  std::filesystem::path folder_;
  std::string command_;
  Run run_;
  std::string problem_;
};

}  // namespace assay::history
