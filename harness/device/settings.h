// Environment variables that change what libraries and kernels compute, or how fast, without a word in the plan. One
// table (settings.cpp) has the consequence of each; docs/measuring.md describes it.
#pragma once

#include "harness/device/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class SettingEffect {
  precision,  // another precision than the case names: refused
  slows,      // waits, logs or instruments during calls: a condition of the record, and a flag
  figures,    // other algorithms, kernels, orders of sums or transports: a condition of the record
};

struct Setting {
  std::string name;
  std::string value;
  SettingEffect effect = SettingEffect::figures;
};

// Whether the table has the variable, for any device: ranks on other hosts must have it, too.
bool changes_figures(std::string_view name);

// The settings of this process's environment that count for `ranks` ranks on such a device, in alphabetical order. A
// value that means the default does not count.
std::vector<Setting> settings_here(DeviceKind device, int ranks);

// Throws UsageError if a setting changes the precision.
void refuse_other_precision(DeviceKind device);

}  // namespace assay
