// Writes what a GPU, its driver and its libraries say of themselves into a folder: cuda_attributes.json,
// cudnn_device.json, nvml.json (the return code of every NVML call that we make). tests/gpu/check runs it first of all;
// a folder under tests/gpu/dumps is a fixture of dumps_test.py and of tests/planning.
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/module.h"
#include "harness/machine/nvml_api.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace assay;
using namespace assay::nvml;

using Calls = std::vector<std::pair<std::string, std::function<Return()>>>;

template <typename T, typename Function, typename... Arguments>
std::function<Return()> writes(Function function, Arguments... arguments) {
  return [=] {
    T value{};
    return function(arguments..., &value);
  };
}

template <typename Function, typename... Arguments>
std::function<Return()> text(Function function, Arguments... arguments) {
  return [=] {
    char words[128] = {};
    return function(arguments..., words, unsigned{sizeof words});
  };
}

// Calls of functions that the driver has; the others are null.
Calls calls_of(const Functions& f, Handle gpu) {
  Calls calls;
  const auto add = [&](const char* name, const auto& function, const auto& make) {
    calls.emplace_back(name, function ? make(function) : std::function<Return()>());
  };
  const auto number = [&](auto zero, auto... before) {
    return [=](auto function) { return writes<decltype(zero)>(function, gpu, before...); };
  };
  const auto words = [&](auto function) { return text(function, gpu); };
  add("name", f.name, words);
  add("uuid", f.uuid, words);
  add("serial", f.serial, words);
  add("vbios", f.vbios, words);
  add("pci", f.pci, number(PciInfo{}));
  add("clock sm", f.clock, number(0u, clock_sm));
  add("clock memory", f.clock, number(0u, clock_memory));
  add("max_clock sm", f.max_clock, number(0u, clock_sm));
  add("applications_clock sm", f.applications_clock, number(0u, clock_sm));
  add("default_applications_clock sm", f.default_applications_clock, number(0u, clock_sm));
  add("power", f.power, number(0u));
  add("power_limit", f.power_limit, number(0u));
  add("default_power_limit", f.default_power_limit, number(0u));
  add("energy", f.energy, number(0ull));
  add("temperature", f.temperature, number(0u, 0));
  add("throttle", f.throttle, number(0ull));
  add("utilization", f.utilization, number(Utilization{}));
  add("memory", f.memory, number(MemoryInfo{}));
  add("ecc_errors corrected", f.ecc_errors, number(0ull, 0, 0));
  add("ecc_errors uncorrected", f.ecc_errors, number(0ull, 1, 0));
  add("max_slices", f.max_slices, number(0u));
  add("whole", f.whole, number(Handle{}));
  add("persistence_mode", f.persistence_mode, number(0));
  add("pcie_throughput sent", f.pcie_throughput, number(0u, 0));
  add("pcie_throughput received", f.pcie_throughput, number(0u, 1));
  add("pcie_replays", f.pcie_replays, number(0u));
  add("link_generation", f.link_generation, number(0u));
  add("link_width", f.link_width, number(0u));
  add("max_link_generation", f.max_link_generation, number(0u));
  add("max_link_width", f.max_link_width, number(0u));
  add("nvlink_state 0", f.nvlink_state, number(0, 0u));
  add("nvlink_version 0", f.nvlink_version, number(0u, 0u));
  for (const int counter : {0, 1, 2, 3, 4}) {
    const std::string name = fmt::format("nvlink_errors 0 {}", counter);
    add(name.c_str(), f.nvlink_errors, number(0ull, 0u, counter));
  }
  add("mig_mode", f.mig_mode, [&](auto function) {
    return [=]() -> Return {
      unsigned now = 0, pending = 0;
      return function(gpu, &now, &pending);
    };
  });
  add("ecc_mode", f.ecc_mode, [&](auto function) {
    return [=]() -> Return {
      int now = 0, pending = 0;
      return function(gpu, &now, &pending);
    };
  });
  add("remapped_rows", f.remapped_rows, [&](auto function) {
    return [=]() -> Return {
      unsigned rows[4];
      return function(gpu, &rows[0], &rows[1], &rows[2], &rows[3]);
    };
  });
  const auto processes = [&](auto function) {
    return [=]() -> Return {
      std::vector<ProcessInfo> all(256);
      auto count = static_cast<unsigned>(all.size());
      return function(gpu, &count, all.data());
    };
  };
  add("processes", f.processes, processes);
  add("mps_processes", f.mps_processes, processes);
  add("gpm_support", f.gpm_support, [&](auto function) {
    return [=]() -> Return {
      GpmSupport support{1, 0};
      return function(gpu, &support);
    };
  });
  // The code of a field is that of its own answer.
  const auto fields = {field_power_average,    field_power_instant,      field_memory_temperature,
                       field_nvlink_sent,      field_nvlink_received,    field_nvlink5_sent,
                       field_nvlink5_received, fields_nvlink5_errors[0], fields_nvlink5_corrected[0],
                       field_throttled,        field_throttled + 1,      field_throttled + 2,
                       field_throttled_12,     field_throttled_12 + 1,   field_throttled_12 + 2};
  for (const unsigned id : fields) {
    const std::string name = fmt::format("field {}", id);
    add(name.c_str(), f.fields, [&](auto function) {
      return [=]() -> Return {
        FieldValue value{};
        value.field = id;
        const Return code = function(gpu, 1, &value);
        return code == success ? value.result : code;
      };
    });
  }
  return calls;
}

// {"driver": "580.65", "cuda": 13000, "calls": {"name": 0, "field 185": 3, "gpm_support": "absent"}}.
std::string nvml_codes() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "{\"error\": \"no libnvidia-ml.so.1\"}\n";
  Return (*const init)() = nvml::find(library, "nvmlInit_v2");
  const Return started = init ? init() : -1;
  if (started != success) return fmt::format("{{\"error\": \"nvmlInit: {}\"}}\n", started);
  const Functions functions(library);
  Handle gpu = nullptr;
  if (!functions.by_index || functions.by_index(0, &gpu) != success) return "{\"error\": \"no device 0\"}\n";
  int cuda = 0;
  if (functions.cuda_version) functions.cuda_version(&cuda);
  const std::string driver = nvml_text([&](char* words, unsigned size) {
    return functions.driver_version ? functions.driver_version(words, size) : -1;
  });
  std::string codes;
  for (const auto& [name, call] : calls_of(functions, gpu))
    codes +=
        fmt::format("{}\"{}\": {}", codes.empty() ? "" : ", ", name, call ? fmt::format("{}", call()) : "\"absent\"");
  return fmt::format("{{\"driver\": \"{}\", \"cuda\": {}, \"calls\": {{{}}}}}\n", driver, cuda, codes);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) throw UsageError("usage: gpu_dump FOLDER");
  const std::filesystem::path folder = words[1];
  std::filesystem::create_directories(folder);
  replace_file(folder / "nvml.json", nvml_codes());
  std::string cuda, cudnn;
  Module::load("cuda").function<void (*)(std::string*, std::string*)>("assay_describe_gpu")(&cuda, &cudnn);
  replace_file(folder / "cuda_attributes.json", cuda);
  replace_file(folder / "cudnn_device.json", cudnn);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_dump: %s\n", error.what());
  return 1;
}
