// Hostfiles in Open MPI's syntax.
#pragma once

#include "harness/hosts/allocation.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Whether this can be the name or address of a host: up to 255 letters, digits and ".-_:[]", without a leading "-" that
// a remote shell would take for a flag.
bool is_host_name(std::string_view name);

// One host per line: `[USER@]HOST [slots=N] [max_slots=N] [username=USER]`. `#` and `//` begin comments, /* */ enclose
// them. `^HOST` excludes a host; the slots of a repeated host add up. `count`, `cpu` and `cores` mean slots. Throws
// UsageError that lists every bad line as `source:LINE: ...`.
std::vector<AllocatedHost> parse_hostfile(std::string_view text, const std::string& source);

// The same from a file; `flag` is where its name came from. Throws UsageError when it cannot be read or has no host.
std::vector<AllocatedHost> read_hostfile(const std::filesystem::path& path, const std::string& flag);

}  // namespace assay
