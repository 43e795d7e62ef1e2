// Tar archives (POSIX ustar) of files in memory, written the same way byte for byte on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct TarMember {
  std::string name;   // "runs/1/run.json": relative, parts divided by '/', none of them "", "." or ".."
  std::string bytes;  // its content
};

struct TarLimits {
  std::uintmax_t bytes = std::uintmax_t{1} << 30;  // limit of the whole archive
  std::size_t members = 100'000;
};

// The archive: members sorted by name, mode 0644, owner 0, time 0. Equal members give equal bytes. Throws Error that
// names the member: no relative name, twice the same name, or longer than ustar holds (100 bytes after a slash, 155
// before it).
std::string tar_bytes(std::vector<TarMember> members);

// Whether the bytes are any tar archive, damaged or not.
bool is_tar(std::string_view bytes);

// The files of an archive, in its order; folders are skipped. Throws Error "NAME: ..." if it is damaged, cut short or
// beyond the limits, and for what tar_bytes() never writes: links, devices, extended headers, absolute names, "..", two
// files of one name. `name` is what messages call the archive.
std::vector<TarMember> parse_tar(std::string_view bytes, const std::string& name, const TarLimits& limits = {});

}  // namespace assay
