// Two acceptances of a fleet, before and after an update: which hosts changed their state, what moved on how many
// hosts, and which driver or firmware changed there.
#pragma once

#include "harness/fitness/cluster/audits.h"
#include "reports/compare/compare.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

// A run of the hosts of an acceptance together.
struct TogetherRun {
  std::string stage;  // pairs, collectives, training
  std::size_t hosts = 0;
  std::filesystem::path dir;
};

// The folder of an acceptance, as `assay accept` left it.
struct AcceptanceFolder {
  std::filesystem::path dir;
  bool finished = false;                                   // else nothing below is set
  std::vector<std::pair<std::string, std::string>> hosts;  // with their states, a word of fitness::check_words each
  fitness::AuditedFleet audit;
  std::vector<std::filesystem::path> runs;  // of the stage host, the later ones of hosts that were measured again
  std::vector<TogetherRun> together;        // of more than half of the hosts, in the order of stages and time
};

// Whether the folders of both sides are acceptances, one each. Throws UsageError if only some are, or a side has
// several.
bool are_acceptances(const std::vector<std::string>& base, const std::vector<std::string>& head);
// Throws UsageError that names the file that is not what it should be.
AcceptanceFolder read_acceptance(const std::filesystem::path& dir);

// Figures are those of the stage host, of hosts that are in both, and those of all hosts together, of stages that ran
// on as many hosts in both; pairs of hosts are left to the acceptances. They are judged as those of runs. Both must be
// finished.
CompareResult compare_acceptances(const AcceptanceFolder& base, const AcceptanceFolder& head,
                                  const CompareOptions& options, Injected handling);

}  // namespace assay::report
