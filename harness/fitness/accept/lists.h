// Writes what a scheduler takes from an acceptance: the hosts by their verdict, and a script that drains those that
// failed.
#pragma once

#include "harness/fitness/cluster/cluster.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::accept {

// Hosts that failed, and those of which nobody is sure, as Slurm writes lists: "n[17,23]".
inline constexpr const char* failed_file = "failed.txt";
inline constexpr const char* unsure_file = "unsure.txt";
inline constexpr const char* drain_file = "drain.sh";

// A script for sh that drains these hosts in Slurm, or cordons them in Kubernetes, whichever is there; with the
// argument "undo" it gives back what it drained, all of it or the hosts that are named then. Hosts that were drained
// for another reason it leaves alone.
std::string drain_script(const fitness::Acceptance& table);

// Writes the lists and the script into the folder of a finished acceptance, in place of older ones. A host whose name
// no scheduler could have is noted in the table and is in none of them.
void write_lists(fitness::Acceptance& table, const std::filesystem::path& dir);
// Takes them away, since they are not true while an acceptance is under way.
void remove_lists(const std::filesystem::path& dir);

}  // namespace assay::accept
