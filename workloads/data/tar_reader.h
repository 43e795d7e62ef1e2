// The members of a tar archive: ustar, pax and GNU long names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::data {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  // where its content begins in the archive
  std::uint64_t bytes = 0;
};

struct TarIndex {
  std::vector<TarMember> members;  // regular files, in archive order
  std::string problem;             // where and how the archive is damaged; empty if it is not
};

// Reads headers only. Damage does not throw: the members before it are kept, and `problem` describes it. Throws
// UsageError if the file cannot be opened or read. Stops after `max_members` regular files.
TarIndex read_tar_index(const std::string& path, std::size_t max_members = SIZE_MAX);

}  // namespace assay::data
