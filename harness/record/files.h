// Durable writes: what the run directory stands on.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

// Writes the whole text or throws Error naming path and reason; a full disk is an error, not a signal.
void write_all(int fd, std::string_view text, const std::filesystem::path& path);
// Replaces the file so that readers see the old text or the new: temporary, fsync, rename, fsync of the folder.
// Throws Error; the temporary is then removed.
void replace_file(const std::filesystem::path& path, std::string_view text);
// Makes a new or renamed entry of the folder durable.
void sync_folder(const std::filesystem::path& folder);
// At most `limit` bytes of a file; throws Error when it cannot be read or is longer.
std::string read_whole(const std::filesystem::path& path, std::uintmax_t limit);

}  // namespace assay
