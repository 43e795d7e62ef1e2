// assay gate-test: tests of a gate that are no benchmarks, each started by `assay gate` in a process that it can kill.
#include "cli/command.h"
#include "harness/audit/audit.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/fitness/gate/inspection.h"
#include "harness/json/members.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

namespace assay::cli {

namespace {

struct GateTestOptions {
  std::string name, folder, fault;
};

void show_audit() {
  const audit::Audit seen = audit::audit_machine(user_root(), static_cast<double>(std::time(nullptr)));
  const bool any_managed = std::ranges::any_of(seen.machine.gpus, &GpuPart::managed);
  gate::Inspection shown;
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
  fmt::print("{}", dump_document(json_of(shown)));
}

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

// Random bytes, written, taken out of the page cache and read again. The disk may have its own cache.
ExitCode check_disk(const std::string& folder, const std::string& fault) {
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
    return ExitCode::failed;
  }
  return ExitCode::ok;
}

ExitCode run(const GateTestOptions& options) {
  if (options.fault == "hang")
    while (true) ::pause();
  if (options.fault == "crash") std::abort();
  if (options.name == "audit") {
    show_audit();
    return ExitCode::ok;
  }
  if (options.name == "disk") return check_disk(options.folder, options.fault);
  throw UsageError(fmt::format("gate-test: no test {}", options.name));
}

}  // namespace

Command gate_test_command(CLI::App& root) {
  auto options = std::make_shared<GateTestOptions>();
  CLI::App* app = root.add_subcommand("gate-test", "Started by assay gate for each of its own tests");
  app->group("");
  app->add_option("name", options->name, "audit or disk")->required();
  app->add_option("fault", options->fault, "hang, crash, flip, full");
  app->add_option("--folder", options->folder, "Where the disk test writes");
  return {app, [options] { return run(*options); }};
}

}  // namespace assay::cli
