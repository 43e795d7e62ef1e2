// What on a machine spoils measurements, each with what was seen and how to fix it.
#pragma once

#include "harness/machine/finding.h"
#include "harness/machine/machine.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct BusyProcess {
  std::int64_t pid = 0;
  std::string name;
  double cpus = 0;  // mean number of CPUs in use
};

// What the machine did in a short interval.
struct Activity {
  std::vector<BusyProcess> busy;  // other processes with at least 5 % of a CPU, busiest first
  std::optional<double> steal;    // fraction of CPU time
};

// Compares /proc before and after `wait` (a sleep of about 200 ms). Excludes this process and kernel threads.
Activity observe(const Root& root, const std::function<void()>& wait);

// Which CPU an installed OpenBLAS detects ("Prescott"), asked in a child process; absent without one.
struct BlasCore {
  std::string version;
  std::string core;
};
std::optional<BlasCore> ask_openblas();

struct Circumstances {
  Activity activity = {};
  std::optional<BlasCore> blas = {};
  std::string build_type = "Release";  // of this binary
};
// Looks at this machine now: watches other processes for a quarter of a second and asks the system's OpenBLAS. Neither
// for files of another machine.
Circumstances present_circumstances(const Root& root = Root());

// Warnings first.
std::vector<Finding> find_spoilers(const Machine& machine, const Circumstances& circumstances);

}  // namespace assay
