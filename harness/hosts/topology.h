// Which leaf switch each host is connected to, as Slurm writes it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace assay {

// The leaf switch, or the block, of each host; of one that is listed below several, as where every rail has its own,
// all of them: "leaf1+leaf2".
using Leaves = std::map<std::string, std::string>;

// What topology.conf and `scontrol show topology` say: `SwitchName=leaf1 Nodes=n[1-8]` or `BlockName=b1 Nodes=...` on a
// line each, further words are left alone, "#" begins a comment. Switches that connect switches are no leaves. Throws
// UsageError, `source:LINE: ...`, if a line is of another form.
Leaves parse_topology(std::string_view text, const std::string& source);

// The same from a file. Throws UsageError when it cannot be read or lists no node.
Leaves read_topology(const std::filesystem::path& path, const std::string& flag);

// What Slurm says; empty, and `problem` says why, if it says nothing.
Leaves slurm_topology(std::string& problem);

}  // namespace assay
