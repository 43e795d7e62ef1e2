// Hostfiles in Open MPI's syntax.
#pragma once

#include "harness/hosts/allocation.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Whether this can be the name or address of a host: up to 255 letters, digits and ".-_:[]", no "-" in front, so that
// no remote shell takes it for a flag.
bool is_host_name(std::string_view name);

// One host a line: `[USER@]HOST [slots=N] [max_slots=N] [username=USER]`; `#` and `//` begin comments, /* */ enclose
// them; `^HOST` takes a host out again; a host that is named again gets more slots. `count`, `cpu` and `cores` are
// other words for slots. Throws UsageError that lists every bad line as `source:LINE: ...`.
std::vector<AllocatedHost> parse_hostfile(std::string_view text, const std::string& source);

// The same from a file; `flag` is what named it. Throws UsageError when it cannot be read or names no host.
std::vector<AllocatedHost> read_hostfile(const std::filesystem::path& path, const std::string& flag);

}  // namespace assay
