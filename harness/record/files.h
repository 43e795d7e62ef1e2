// Durable writes, for the run directory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

// Writes the whole text, or throws Error naming path and reason; a full disk is an error, not a signal.
void write_all(int fd, std::string_view text, const std::filesystem::path& path);
// Replaces the file atomically for readers: temporary, fsync, rename, fsync of the folder. On failure removes the
// temporary and throws Error.
void replace_file(const std::filesystem::path& path, std::string_view text);
// Makes a new or renamed entry of the folder durable.
void sync_folder(const std::filesystem::path& folder);
// A whole file; throws Error if it cannot be read or is longer than `limit` bytes.
std::string read_whole(const std::filesystem::path& path, std::uintmax_t limit);

}  // namespace assay
