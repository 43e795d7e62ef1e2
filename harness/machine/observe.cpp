// Observes other processes, and the CPU that OpenBLAS detects.
#include "harness/core/version.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/machine/cpu_ticks.h"
#include "harness/machine/libraries.h"
#include "harness/machine/processes.h"
#include "harness/machine/spoilers.h"
#include "harness/process/ask.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace assay {

Activity observe(const Root& root, const std::function<void()>& wait) {
  constexpr double min_cpus = 0.05;
  const auto online = cpu_list(root.text("sys/devices/system/cpu/online").value_or("0")).size();
  const auto before_ticks = cpu_ticks(root, {});
  const auto before = read_processes(root);
  wait();
  const auto after = read_processes(root);
  const auto after_ticks = cpu_ticks(root, {});
  const Pid self = own_pid(root);
  Activity activity;
  if (!before_ticks || !after_ticks || after_ticks->total <= before_ticks->total) return activity;
  const auto total = static_cast<double>(after_ticks->total - before_ticks->total);
  activity.steal = std::max(0.0, static_cast<double>(after_ticks->steal - before_ticks->steal) / total);
  const double ticks_per_cpu = total / static_cast<double>(std::max<std::size_t>(online, 1));
  for (const auto& [pid, process] : after) {
    const auto earlier = before.find(pid);
    if (earlier == before.end() || process.kernel || pid == self) continue;
    const double cpus = static_cast<double>(process.ticks - earlier->second.ticks) / ticks_per_cpu;
    if (cpus >= min_cpus) activity.busy.push_back({pid, process.name, cpus});
  }
  std::ranges::sort(activity.busy, std::ranges::greater(), &BusyProcess::cpus);
  return activity;
}

std::optional<BlasCore> ask_openblas() {
  const auto installed = libraries();
  if (!installed.contains("openblas")) return std::nullopt;
  constexpr double timeout = 2;  // for a library that hangs while it loads
  const auto ask = [] {
    // The library's own choice, not the user's.
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    unsetenv("OPENBLAS_CORETYPE");
    void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void* const symbol = library ? dlsym(library, "openblas_get_corename") : nullptr;
    const char* const name = symbol ? reinterpret_cast<char* (*)()>(symbol)() : nullptr;
    return std::string(name ? name : "");
  };
  const std::string core = ask_child(ask, timeout).text.value_or("");
  if (core.empty()) return std::nullopt;
  return BlasCore{installed.at("openblas"), core};
}

Circumstances present_circumstances(const Root& root) {
  Circumstances circumstances;
  if (root.real()) {
    circumstances.activity = observe(root, [] { std::this_thread::sleep_for(std::chrono::milliseconds(250)); });
    circumstances.blas = ask_openblas();
  }
  circumstances.build_type = std::string(build_info().build_type);
  return circumstances;
}

}  // namespace assay
