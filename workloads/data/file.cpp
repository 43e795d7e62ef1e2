#include "workloads/data/file.h"

#include "harness/device/cpu/limits.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace assay::data {

// With O_NONBLOCK, a FIFO that nobody writes to is not waited for.
File File::try_open(const char* path, bool direct) {
  return File(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (direct ? O_DIRECT : 0)));
}

File File::open(const std::string& path, bool direct) {
  File file = try_open(path.c_str(), direct);
  if (!file) throw UsageError(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.fd_, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw UsageError(fmt::format("{}: cannot open: it is no file", path));
  return file;
}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint64_t File::bytes() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw Error(fmt::format("cannot stat a file: {}", std::strerror(errno)));
  return static_cast<std::uint64_t>(status.st_size);
}

std::int64_t File::try_read(void* to, std::size_t count, std::uint64_t offset) const {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::pread(fd_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<std::int64_t>(done);
}

void File::read(void* to, std::size_t count, std::uint64_t offset) const {
  const std::int64_t got = try_read(to, count, offset);
  if (got < 0) throw Error(fmt::format("cannot read a file: {}", std::strerror(errno)));
  if (static_cast<std::size_t>(got) < count)
    throw Error(fmt::format("a file ended at byte {} while it was read", offset + static_cast<std::uint64_t>(got)));
}

namespace {

std::byte* page_start(const AlignedBytes& buffer) {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  return buffer.data() + (direct_alignment - address % direct_alignment) % direct_alignment;
}

}  // namespace

const std::byte* File::try_read_range(std::uint64_t offset, std::uint64_t count, bool direct, AlignedBytes& buffer,
                                      const char*& error) const {
  const std::uint64_t from = direct ? offset / direct_alignment * direct_alignment : offset;
  const std::uint64_t needed = offset - from + count;
  const std::uint64_t length = direct ? (needed + direct_alignment - 1) / direct_alignment * direct_alignment : needed;
  buffer.reserve(length + direct_alignment);
  std::byte* to = direct ? page_start(buffer) : buffer.data();
  const std::int64_t got = try_read(to, length, from);
  if (got < 0) return error = std::strerror(errno), nullptr;
  if (static_cast<std::uint64_t>(got) < needed) return error = "the file has become shorter", nullptr;
  return to + (offset - from);
}

std::string direct_read_problem(const std::string& path) {
  constexpr long tmpfs = 0x01021994, ramfs = static_cast<long>(0x858458f6);
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0) return fmt::format("{}: {}", path, std::strerror(errno));
  if (status.f_type == tmpfs || status.f_type == ramfs) return fmt::format("{} is on an in-memory file system", path);
  const File file = File::try_open(path.c_str(), true);
  if (!file) return fmt::format("{}: its file system refuses O_DIRECT: {}", path, std::strerror(errno));
  const AlignedBytes page(2 * direct_alignment);
  if (file.try_read(page_start(page), direct_alignment, 0) < 0)
    return fmt::format("{}: its file system refuses O_DIRECT: {}", path, std::strerror(errno));
  return {};
}

double resident_fraction(const File& file) {
  const std::size_t bytes = file.bytes();
  if (bytes == 0) return 0;
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (map == MAP_FAILED) return 1;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  const bool known = ::mincore(map, bytes, pages.data()) == 0;
  ::munmap(map, bytes);
  if (!known) return 1;
  const auto resident = std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; });
  return static_cast<double>(resident) / static_cast<double>(pages.size());
}

Residency residency(const std::vector<std::string>& files, std::size_t max_files) {
  Residency result;
  double resident = 0, bytes = 0;
  const std::size_t count = std::min(max_files, files.size());
  for (std::size_t i = 0; i < count; ++i) {
    const File file = File::try_open(files[i * files.size() / count].c_str(), false);
    if (!file) continue;  // the reader will report it
    resident += resident_fraction(file) * static_cast<double>(file.bytes());
    bytes += static_cast<double>(file.bytes());
    ++result.sampled;
  }
  result.fraction = bytes > 0 ? resident / bytes : 0;
  return result;
}

std::uint64_t page_cache_capacity() {
  const cpu::MemoryLimits limits = cpu::memory_limits();
  return std::min(limits.machine_available, limits.cgroup_available.value_or(limits.machine_available));
}

void warm(const File& file) {
  std::vector<char> buffer(1 << 20);
  for (std::uint64_t at = 0;;) {
    const std::int64_t got = file.try_read(buffer.data(), buffer.size(), at);
    if (got <= 0) return;
    at += static_cast<std::uint64_t>(got);
  }
}

}  // namespace assay::data
