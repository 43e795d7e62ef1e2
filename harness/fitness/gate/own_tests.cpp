// Tests of a gate that are no benchmarks, each in a process of its own.
#include "harness/fitness/gate/own_tests.h"

#include "harness/audit/audit.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/machine/expectation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

namespace assay::gate {

namespace {

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail("create");
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
    ::unlink(path_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  [[noreturn]] void fail(const char* what) const {
    throw Error(fmt::format("cannot {} {}: {}", what, path_, std::strerror(errno)));
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

Inspection inspect_machine(const std::string& expect) {
  const Root root = user_root();
  const auto expectation = expect.empty() ? Expectation() : read_expectation(expect, root);
  audit::Audit seen = audit::audit_machine(root, static_cast<double>(std::time(nullptr)));
  for (Finding& one : findings_of(expectation, shortfalls(expectation, seen.machine, shipped_hardware(), root)))
    seen.problems.push_back(std::move(one));
  const bool any_managed = std::ranges::any_of(seen.machine.gpus, &GpuPart::managed);
  Inspection shown;
  shown.audit = seen;
  for (const GpuPart& gpu : seen.machine.gpus)
    shown.gpus.push_back({.pci = gpu.pci,
                          .uuid = gpu.uuid,
                          .name = gpu.name,
                          .shown = gpu.managed || !any_managed,
                          .lost = std::ranges::any_of(seen.problems,
                                                      [&](const Finding& one) {
                                                        return one.device == gpu.pci &&
                                                               (one.id == "gpu-lost" || one.id == "gpu-missing");
                                                      }),
                          .mig = gpu.mig,
                          .slices = gpu.slices,
                          .clients = gpu.clients.size()});
  const CpuPart& cpu = seen.machine.cpu;
  if (cpu.quota_cpus) shown.withheld_cpus = std::max(0.0, cpu.usable_cores - *cpu.quota_cpus);
  return shown;
}

bool disk_holds(const std::string& folder, const std::string& fault) {
  constexpr std::size_t block_bytes = std::size_t{4} << 20;
  constexpr std::size_t blocks = 8;
  std::vector<std::uint64_t> block(block_bytes / sizeof(std::uint64_t)), again(block.size());
  std::uint64_t state = static_cast<std::uint64_t>(std::time(nullptr));
  for (std::uint64_t& word : block) word = state = state * 6364136223846793005u + 1442695040888963407u;
  ignore_file_size_signal();
  if (fault == "full") {
    const rlimit limit{block_bytes, block_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  const std::string path = folder + "/disk";
  const File file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(block.data()), block_bytes);
  for (std::size_t i = 0; i < blocks; ++i) {
    block[0] = i;
    write_all(file.fd(), bytes, path);
  }
  if (fault == "flip" && ::pwrite(file.fd(), "!", 1, block_bytes + 4711) != 1) file.fail("write");
  if (::fsync(file.fd()) != 0) file.fail("write");
  (void)::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  for (std::size_t i = 0; i < blocks; ++i) {
    block[0] = i;
    const auto at = static_cast<off_t>(i * block_bytes);
    for (std::size_t done = 0; done < block_bytes;) {
      const ssize_t got = ::pread(file.fd(), reinterpret_cast<char*>(again.data()) + done, block_bytes - done,
                                  at + static_cast<off_t>(done));
      if (got <= 0) file.fail("read");
      done += static_cast<std::size_t>(got);
    }
    if (std::memcmp(block.data(), again.data(), block_bytes) == 0) continue;
    say("{}: bytes {} to {} are not what was written\n", path, at, at + static_cast<off_t>(block_bytes));
    return false;
  }
  return true;
}

}  // namespace assay::gate
