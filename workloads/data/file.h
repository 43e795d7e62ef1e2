// Files read at given places, through the page cache or past it.
#pragma once

#include "harness/core/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::data {

// A file open for reading; closed by the destructor.
class File {
 public:
  // Throws UsageError naming the path and the system's reason. `direct` goes past the page cache (O_DIRECT).
  static File open(const std::string& path, bool direct = false);
  // The same without exceptions or allocation: an invalid file, and the reason in errno.
  static File try_open(const char* path, bool direct);

  File() = default;
  File(File&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  File& operator=(File&& other) noexcept;
  ~File();

  explicit operator bool() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  // Size in bytes.
  std::uint64_t bytes() const;
  // Reads exactly `count` bytes at `offset`; throws Error when the file is shorter or the disk fails.
  void read(void* to, std::size_t count, std::uint64_t offset) const;
  // Reads up to `count` bytes; returns how many, or -1 with the reason in errno.
  std::int64_t try_read(void* to, std::size_t count, std::uint64_t offset) const;

 private:
  explicit File(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// What O_DIRECT asks of offsets, lengths and addresses; a page covers every disk in use.
inline constexpr std::uint64_t direct_alignment = 4096;

// Why reads of this path cannot be shown to come from the disk: a file system in memory, or one that refuses O_DIRECT.
// Empty when they can.
std::string no_direct_reads(const std::string& path);

// Pages of the file that lie in the page cache, as a share of its length; 0 for an empty file.
double resident_share(const File& file);
// The same over `looked_at` of these files, spread evenly (all, where there are no more); weighed by their length.
struct Residency {
  double share = 0;
  std::size_t looked_at = 0;
};
Residency residency(const std::vector<std::string>& files, std::size_t looked_at);
// Bytes that the page cache could hold: what is available of the machine's memory and of the cgroup's.
std::uint64_t page_cache_room();
// Reads the whole file once, so that later reads find it in the page cache.
void warm(const File& file);

}  // namespace assay::data
