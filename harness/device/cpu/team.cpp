// Binds OpenMP's threads, and finds this rank's CPUs.
#include "harness/device/cpu/team.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/device/cpu/limits.h"
#include "harness/device/cpu/topology.h"

#include <fmt/ranges.h>

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace assay::cpu {

namespace {

constexpr int max_cpus = 8192;  // the largest CPU number that Linux can be built for

// A CPU set without the C library's limit of 1,024.
class CpuMask {
 public:
  CpuMask() : set_(CPU_ALLOC(max_cpus)) {
    ASSAY_CHECK(set_, "no memory for a CPU set");
    CPU_ZERO_S(bytes(), set_);
  }
  ~CpuMask() { CPU_FREE(set_); }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;

  static std::size_t bytes() { return CPU_ALLOC_SIZE(max_cpus); }
  cpu_set_t* set() { return set_; }
  void add(int cpu) { CPU_SET_S(cpu, bytes(), set_); }
  bool has(int cpu) const { return CPU_ISSET_S(cpu, bytes(), set_); }

 private:
  cpu_set_t* set_;
};

// The CPU that this thread is bound to; -1 if it may use several.
thread_local int bound_cpu = -1;

void bind_to(int cpu) {
  if (bound_cpu == cpu) return;
  bind_this_thread({cpu});
  bound_cpu = cpu;
}

// A CPU list in the kernel's format: "0-3,8".
std::set<int> parse_cpu_list(std::string_view list) {
  std::set<int> cpus;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    const std::size_t dash = part.find('-');
    const int low = whole_number<int>(part.substr(0, dash)).value_or(-1);
    const int high = dash == std::string_view::npos ? low : whole_number<int>(part.substr(dash + 1)).value_or(-1);
    if (low < 0 || high < low || high >= max_cpus)
      throw UsageError(fmt::format("ASSAY_CPUS: \"{}\" is not a CPU or a range of CPUs, as in 0-3,8", part));
    for (int cpu = low; cpu <= high; ++cpu) cpus.insert(cpu);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return cpus;
}

std::set<int> allowed_cpus() {
  if (const char* list = std::getenv("ASSAY_CPUS"); list && *list) return parse_cpu_list(list);
  std::set<int> cpus;
  CpuMask mask;
  // The main thread's mask is the process's, whichever thread asks.
  if (sched_getaffinity(getpid(), CpuMask::bytes(), mask.set()) == 0)
    for (int cpu = 0; cpu < max_cpus; ++cpu)
      if (mask.has(cpu)) cpus.insert(cpu);
  // With OMP_PROC_BIND set, OpenMP has bound the main thread before main(): its places list the others.
  if (omp_get_proc_bind() != omp_proc_bind_false)
    for (int place = 0; place < omp_get_num_places(); ++place) {
      std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
      omp_get_place_proc_ids(place, ids.data());
      cpus.insert(ids.begin(), ids.end());
    }
  if (cpus.empty())
    for (int cpu = 0; cpu < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); ++cpu) cpus.insert(cpu);
  return cpus;
}

struct RankCpus {
  std::vector<int> cpus;
  int cores = 0;
};

RankCpus in_order(std::set<int> left) {
  RankCpus found;
  std::vector<int> siblings;
  for (const Core& core : topology().cores) {
    bool first = true;
    for (const int cpu : core.cpus) {
      if (left.erase(cpu) == 0) continue;
      (first ? found.cpus : siblings).push_back(cpu);
      first = false;
    }
  }
  found.cpus.insert(found.cpus.end(), left.begin(), left.end());  // CPUs missing from the topology
  found.cores = static_cast<int>(found.cpus.size());
  found.cpus.insert(found.cpus.end(), siblings.begin(), siblings.end());
  return found;
}

const RankCpus& known_cpus() {
  static const RankCpus known = in_order(allowed_cpus());
  return known;
}

std::vector<std::string> own_arguments() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

int cores_of_first_node() {
  const std::vector<int>& cpus = rank_cpus();
  const auto node_of = [](int cpu) {
    for (const Core& core : topology().cores)
      if (std::ranges::find(core.cpus, cpu) != core.cpus.end()) return core.numa_node;
    return 0;
  };
  const int node = node_of(cpus.front());
  return static_cast<int>(
      std::count_if(cpus.begin(), cpus.begin() + rank_cores(), [&](int cpu) { return node_of(cpu) == node; }));
}

}  // namespace

const std::vector<int>& rank_cpus() { return known_cpus().cpus; }

int rank_cores() { return known_cpus().cores; }

void bind_this_thread(const std::vector<int>& cpus) {
  CpuMask mask;
  for (const int cpu : cpus) mask.add(cpu);
  if (sched_setaffinity(0, CpuMask::bytes(), mask.set()) != 0)
    throw Error(fmt::format("cannot bind a thread to CPU {}: {}", fmt::join(cpus, ","), std::strerror(errno)));
  bound_cpu = -1;
}

void restart_on(const std::vector<int>& cpus) {
  const std::vector<int> order = in_order({cpus.begin(), cpus.end()}).cpus;
  const std::pair<const char*, std::string> wanted[] = {{"ASSAY_CPUS", fmt::format("{}", fmt::join(order, ","))},
                                                        {"OMP_PLACES", fmt::format("{{{}}}", fmt::join(order, "},{"))},
                                                        {"OMP_PROC_BIND", "close"}};
  try {
    bind_this_thread(order);  // OpenMP had bound it to the first place
  } catch (const Error&) {    // a sandbox that forbids it
    return;
  }
  bool there = true;
  for (const auto& [name, value] : wanted) {
    const char* found = std::getenv(name);
    there = there && found && found == value;
    setenv(name, value.c_str(), 1);
  }
  if (there) return;
  std::vector<std::string> words = own_arguments();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (!words.empty()) execv("/proc/self/exe", arguments.data());
}

// Shared by all teams of one thread; the last one to end unbinds that thread.
struct Team::Binding {
  ~Binding() {
    try {
      bind_this_thread(rank_cpus());
    } catch (const std::exception&) {  // the CPUs are gone
    }
  }
};

Team::Team(int threads) : threads_(threads) {
  const int cpus = static_cast<int>(rank_cpus().size());
  if (threads < 1 || threads > cpus)
    throw UsageError(fmt::format("a team of {} threads: this rank has {}", threads, plural(cpus, "CPU")));
  thread_local std::weak_ptr<Binding> current;
  binding_ = current.lock();
  if (!binding_) current = binding_ = std::make_shared<Binding>();
  use();
}

void Team::use() const {
  run([](int) {});
}

void Team::run(const std::function<void(int)>& fn) const {
  ASSAY_CHECK(!omp_in_parallel(), "a team runs inside another one");
  if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  const std::vector<int>& cpus = rank_cpus();
  if (threads_ == 1) {
    bind_to(cpus.front());
    fn(0);
    return;
  }
  omp_set_dynamic(0);
  std::exception_ptr failure;
  std::mutex failure_lock;
  int started = 0;
#pragma omp parallel num_threads(threads_) default(shared)
  {
    const int thread = omp_get_thread_num();
    if (thread == 0) started = omp_get_num_threads();
    try {
      bind_to(cpus[static_cast<std::size_t>(thread)]);
      fn(thread);
    } catch (...) {
      const std::lock_guard<std::mutex> hold(failure_lock);
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  if (started != threads_)
    throw Error(fmt::format("OpenMP gave {} of {} threads: OMP_THREAD_LIMIT or the limit on processes is too low",
                            started, threads_));
}

int resolve_threads(const std::string& count, const std::filesystem::path& root) {
  if (count == "core") return 1;
  if (count == "node") return cores_of_first_node();
  if (count == "cpus") return static_cast<int>(rank_cpus().size());
  if (count == "all") {
    const auto quota = cpu_quota(root);
    return quota ? std::clamp(static_cast<int>(std::floor(*quota)), 1, rank_cores()) : rank_cores();
  }
  const int threads = whole_number<int>(count).value_or(-1);
  if (threads < 1) throw UsageError(fmt::format("threads={}: use all, cpus, core, node or a number from 1 on", count));
  if (threads > static_cast<int>(rank_cpus().size()))
    throw UsageError(fmt::format("threads={}: this rank has {} CPUs", threads, rank_cpus().size()));
  return threads;
}

}  // namespace assay::cpu
