#include "harness/process/child_counter.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace assay {

namespace {

int open_counter(ChildCounter::What what, bool children) {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  const bool instructions = what == ChildCounter::What::instructions;
  wanted.type = instructions ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  wanted.config = instructions ? std::uint64_t{PERF_COUNT_HW_INSTRUCTIONS} : std::uint64_t{PERF_COUNT_SW_TASK_CLOCK};
  wanted.inherit = children ? 1 : 0;
  wanted.exclude_kernel = wanted.exclude_hv = 1;
  wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

struct Reading {
  std::uint64_t value = 0, enabled = 0, running = 0;
};

std::optional<Reading> read_counter(int counter) {
  Reading reading;
  if (::read(counter, &reading, sizeof reading) != sizeof reading || reading.running < reading.enabled)
    return std::nullopt;
  return reading;
}

std::string why_not(int error) {
  switch (error) {
    case EACCES:
    case EPERM: return "the kernel lets this user count nothing (kernel.perf_event_paranoid, or a container's filter)";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "this machine has no such counter (many virtual machines hide it)";
    case ENOSYS: return "this kernel has no performance events";
    default: return fmt::format("perf_event_open: {}", std::strerror(error));
  }
}

}  // namespace

std::optional<ChildCounter> ChildCounter::start(What what, std::string* why) {
  const int all = open_counter(what, true);
  const int own = all < 0 ? -1 : open_counter(what, false);
  if (own >= 0) return ChildCounter(all, own);
  *why = why_not(errno);
  if (all >= 0) ::close(all);
  return std::nullopt;
}

ChildCounter::~ChildCounter() {
  for (const int counter : {all_, own_})
    if (counter >= 0) ::close(counter);
}

std::optional<double> ChildCounter::count() const {
  // Between the two, this thread does some thousand instructions, of which some count as the children's: the same each
  // time.
  const auto all = read_counter(all_), own = read_counter(own_);
  if (!all || !own) return std::nullopt;
  return all->value > own->value ? static_cast<double>(all->value - own->value) : 0.0;
}

}  // namespace assay
