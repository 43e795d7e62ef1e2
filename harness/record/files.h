// Durable writes, for the run directory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

// Writes the whole text, or throws Error naming path and reason; a full disk is an error, not a signal.
void write_all(int fd, std::string_view text, const std::filesystem::path& path);
// Beyond RLIMIT_FSIZE the kernel sends a signal; ignored from now on, so that writing gives an error instead.
void ignore_file_size_signal();
// Replaces the file atomically for readers: temporary, fsync, rename, fsync of the folder. On failure removes the
// temporary and throws Error.
void replace_file(const std::filesystem::path& path, std::string_view text);
// Makes all that was written to the file system of this path durable.
void sync_file_system(const std::filesystem::path& path);
// Makes a new or renamed entry of the folder durable.
void sync_folder(const std::filesystem::path& folder);
// A whole file; throws Error if it cannot be read or is longer than `limit` bytes.
std::string read_whole(const std::filesystem::path& path, std::uintmax_t limit);

}  // namespace assay
