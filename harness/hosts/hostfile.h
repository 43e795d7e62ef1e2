// Hostfiles in the syntax of Open MPI, MPICH and Intel MPI, with ranges and groups.
#pragma once

#include "harness/hosts/allocation.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Whether this can be the name or address of a host: up to 255 letters, digits and ".-_:", without a leading "-" that
// a remote shell would take for a flag.
bool is_host_name(std::string_view name);

// One host per line: `[USER@]HOST[:SLOTS] [slots=N] [max_slots=N] [username=USER]`. HOST is a name or an address, or
// several as Slurm writes them: `n[01-16,20]`; an IPv6 address stands in brackets if slots follow it, `[fe80::1]:4`.
// `#` and `//` begin comments, /* */ enclose them. `^HOST` excludes a host; the slots of a repeated host add up.
// `count`, `cpu` and `cores` mean slots. `[GROUP]` alone on a line is left out, and so is all below `[GROUP:vars]` and
// `[GROUP:children]`. Throws UsageError that lists the first 20 bad lines as `source:LINE: ...`, and how many more.
std::vector<AllocatedHost> parse_hostfile(std::string_view text, const std::string& source);

// The same from a file; `flag` is where its name came from. Throws UsageError when it cannot be read or has no host.
std::vector<AllocatedHost> read_hostfile(const std::filesystem::path& path, const std::string& flag);

}  // namespace assay
