// What other processes do, and which CPU OpenBLAS detects.
#include "harness/core/version.h"
#include "harness/machine/ask_process.h"
#include "harness/machine/cpu_ticks.h"
#include "harness/machine/findings.h"
#include "harness/machine/libraries.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

namespace assay {
namespace {

struct Process {
  std::string name;
  std::int64_t ticks = 0;
};

// pid (name) state ppid ... utime stime: names may contain spaces and parentheses, so count from the last one.
std::optional<Process> parse_stat(const std::string& stat) {
  const auto open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const auto rest = words(std::string_view(stat).substr(close + 1));
  constexpr std::size_t flags = 6, user = 11, system = 12;
  constexpr std::int64_t kernel_thread = 0x00200000;
  if (rest.size() <= system || (to_integer(rest[flags]).value_or(0) & kernel_thread)) return std::nullopt;
  return Process{stat.substr(open + 1, close - open - 1),
                 to_integer(rest[user]).value_or(0) + to_integer(rest[system]).value_or(0)};
}

std::map<std::int64_t, Process> processes(const Root& root) {
  const auto self =
      root.real() ? std::int64_t{getpid()} : to_integer(root.link_name("proc/self").value_or("")).value_or(-1);
  std::map<std::int64_t, Process> all;
  for (const auto& name : root.list("proc")) {
    const auto pid = name.find_first_not_of("0123456789") == std::string::npos ? to_integer(name) : std::nullopt;
    if (!pid || *pid == self) continue;
    const auto stat = root.text("proc/" + name + "/stat");
    if (const auto process = stat ? parse_stat(*stat) : std::nullopt) all.emplace(*pid, *process);
  }
  return all;
}

}  // namespace

Activity observe(const Root& root, const std::function<void()>& wait) {
  constexpr double min_cpus = 0.05;
  const auto online = parse_cpu_list(root.text("sys/devices/system/cpu/online").value_or("0")).size();
  const auto before_ticks = cpu_ticks(root, {});
  const auto before = processes(root);
  wait();
  const auto after = processes(root);
  const auto after_ticks = cpu_ticks(root, {});
  Activity activity;
  if (!before_ticks || !after_ticks || after_ticks->total <= before_ticks->total) return activity;
  const auto total = static_cast<double>(after_ticks->total - before_ticks->total);
  activity.steal = std::max(0.0, static_cast<double>(after_ticks->steal - before_ticks->steal) / total);
  const double ticks_per_cpu = total / static_cast<double>(std::max<std::size_t>(online, 1));
  for (const auto& [pid, process] : after) {
    const auto earlier = before.find(pid);
    if (earlier == before.end()) continue;
    const double cpus = static_cast<double>(process.ticks - earlier->second.ticks) / ticks_per_cpu;
    if (cpus >= min_cpus) activity.busy.push_back({pid, process.name, cpus});
  }
  std::sort(activity.busy.begin(), activity.busy.end(),
            [](const BusyProcess& a, const BusyProcess& b) { return a.cpus > b.cpus; });
  return activity;
}

std::optional<BlasCore> ask_openblas() {
  const auto installed = libraries();
  if (!installed.contains("openblas")) return std::nullopt;
  constexpr int timeout_ms = 2000;  // for a library that hangs while it loads
  const std::string core = ask_in_child_process(timeout_ms, [] {
    // The library's own choice, not the user's.
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    unsetenv("OPENBLAS_CORETYPE");
    void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library ? dlsym(library, "openblas_get_corename") : nullptr;
    const char* const name = symbol ? reinterpret_cast<char* (*)()>(symbol)() : nullptr;
    return std::string(name ? name : "");
  });
  if (core.empty()) return std::nullopt;
  return BlasCore{installed.at("openblas"), core};
}

Circumstances present_circumstances() {
  Circumstances circumstances;
  circumstances.activity = observe(Root(), [] { std::this_thread::sleep_for(std::chrono::milliseconds(250)); });
  circumstances.blas = ask_openblas();
  circumstances.build_type = std::string(build_info().build_type);
  return circumstances;
}

}  // namespace assay
