// Files read at given offsets, through the page cache or bypassing it.
#pragma once

#include "harness/core/error.h"
#include "workloads/data/aligned_bytes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::data {

// A file open for reading; closed by the destructor.
class File {
 public:
  // Throws UsageError with the path and the system's reason. `direct` bypasses the page cache (O_DIRECT).
  static File open(const std::string& path, bool direct = false);
  // The same without exceptions or allocation: on failure an invalid file, with the reason in errno.
  static File try_open(const char* path, bool direct);

  File() = default;
  File(File&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  File& operator=(File&& other) noexcept;
  ~File();

  explicit operator bool() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  // Size in bytes.
  std::uint64_t bytes() const;
  // Reads exactly `count` bytes at `offset`; throws Error if the file is shorter or the read fails.
  void read(void* to, std::size_t count, std::uint64_t offset) const;
  // Reads up to `count` bytes; returns how many, or -1 with the reason in errno.
  std::int64_t try_read(void* to, std::size_t count, std::uint64_t offset) const;
  // Reads exactly `count` bytes at `offset` into `buffer`, with the whole pages around them if the file is open for
  // direct reads. Returns where they start, or null with the reason in `error`.
  const std::byte* try_read_range(std::uint64_t offset, std::uint64_t count, bool direct, AlignedBytes& buffer,
                                  const char*& error) const;

 private:
  explicit File(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// Alignment that O_DIRECT requires of offsets, lengths and addresses; a page suffices for every disk in use.
inline constexpr std::uint64_t direct_alignment = 4096;

// Why reads of this path may not come from the disk: an in-memory file system, or one that refuses O_DIRECT. Empty if
// they do.
std::string direct_read_problem(const std::string& path);

// The fraction of the file that is in the page cache; 0 for an empty file.
double resident_fraction(const File& file);
// The same over at most `max_files` of these files, spread evenly and weighted by length.
struct Residency {
  double fraction = 0;
  std::size_t sampled = 0;  // files
};
Residency residency(const std::vector<std::string>& files, std::size_t max_files);
// Bytes that the page cache could hold: the available memory of machine and cgroup.
std::uint64_t page_cache_capacity();
// Reads the whole file once, so that later reads find it in the page cache.
void warm(const File& file);

}  // namespace assay::data
