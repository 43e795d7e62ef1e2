// Deciding about a night's suspects while it is still that night, and finding the commit of what became slower.
#pragma once

#include "harness/ab/commands.h"
#include "harness/core/clock.h"
#include "harness/history/confirm.h"
#include "harness/history/repository.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::history {

// A commit's checkout, built; absent if it cannot be, of which `why` tells.
using BuildOf =
    std::function<std::optional<std::filesystem::path>(const std::string& commit, double seconds, std::string& why)>;

// Where in a list of commits, the oldest first, something came to be. The commit before the first does not have it, the
// last does.
struct Narrowed {
  std::size_t first = 0, last = 0;  // it is one of these; known if they are equal
  std::string why = {};             // it is not known
};
// Bisects. `has` says of a commit whether it has it; absent if that cannot be said, when its neighbours are asked.
// `go_on` says whether there is time for one more.
Narrowed bisect(std::size_t commits, const std::function<std::optional<bool>(std::size_t)>& has,
                const std::function<bool()>& go_on);

struct NightRequest {
  std::string run;       // command that prints the figures, in a checkout
  std::string metric;    // as of ConfirmRequest
  double budget = 3600;  // seconds
  std::uint64_t seed = 0;
  std::set<std::string> machines = {};  // names that this machine has in a store
  // Says in which functions two commands differ, within so many seconds; may be empty.
  std::function<std::string(const std::string& a, const std::string& b, double seconds)> where = {};
};

struct NightDecisions {
  std::vector<Confirmation> confirmations;
  std::vector<Event> found;        // events of which the commit is known now, or better than before
  std::vector<std::string> lines;  // what was done, what was found, and what the budget cut
};

// Measures the last good build and tonight's for the suspects of this machine, those with the same two commits in one
// comparison, the largest first. Then bisects what became slower, also by the nights alone. Nothing is stored.
NightDecisions decide_night(const History& history, const Repository& repository, const NightRequest& request,
                            const BuildOf& build, const Measure& measure);
// Stores them, and reads the history again: what was confirmed tonight is new to its check.
History with_decisions(store::Store& store, History history, NightDecisions decisions);

}  // namespace assay::history
