// The table of variables. A setting of the harness itself, or one that it overrides (thread counts, places), is not in
// it.
#include "harness/device/settings.h"

#include "harness/core/error.h"
#include "harness/core/glob.h"
#include "harness/core/secrets.h"
#include "harness/core/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <limits>

namespace assay {

namespace {

constexpr std::size_t max_value_bytes = 4096;  // longer ones are cut

enum class Where { anywhere, cpu, mpi, cuda, nccl };  // mpi and nccl: with several ranks on that device

struct Row {
  std::string_view names;               // * stands for any text
  std::optional<SettingEffect> effect;  // none: says where something is, or what is overridden anyway
  Where where = Where::anywhere;
  std::string_view neutral = {};  // the value that stands for the default, in lower case
};

using enum SettingEffect;

// The first row that matches counts.
constexpr Row rows[] = {
    {"NVIDIA_TF32_OVERRIDE", precision, Where::cuda},  // 0 computes tf32 as f32, others f32 as tf32
    {"CUBLAS*EMULAT*", precision, Where::cuda, "0"},   // f32 and f64 by products of bf16 and i8
    {"DNNL_DEFAULT_FPMATH_MODE", precision, Where::cpu, "strict"},
    {"ONEDNN_DEFAULT_FPMATH_MODE", precision, Where::cpu, "strict"},
    {"CUDA_LAUNCH_BLOCKING", slows, Where::cuda, "0"},
    {"CUDA_INJECTION64_PATH", slows, Where::cuda},  // profilers and debuggers
    {"CUBLAS*_LOG_LEVEL", slows, Where::cuda, "0"},
    {"CUBLAS_LOGINFO_DBG", slows, Where::cuda, "0"},
    {"CUDNN_LOG*_DBG", slows, Where::cuda, "0"},
    {"DNNL_VERBOSE", slows, Where::cpu, "0"},
    {"ONEDNN_VERBOSE", slows, Where::cpu, "0"},
    // Containers and module systems set these.
    {"*_VERSION", std::nullopt},
    {"*_HOME", std::nullopt},
    {"*_ROOT", std::nullopt},
    {"*_PATH", std::nullopt},
    {"*_DIR", std::nullopt},
    {"*_LIBRARY", std::nullopt},
    {"*_NUM_THREADS", std::nullopt},
    {"MKL_*_LAYER", std::nullopt},
    {"CUBLAS_*", figures, Where::cuda},
    {"CUBLASLT_*", figures, Where::cuda},
    {"CUDNN_*", figures, Where::cuda},
    {"CUDA_DEVICE_MAX_CONNECTIONS", figures, Where::cuda},
    {"CUDA_FORCE_*JIT", figures, Where::cuda, "0"},
    {"CUDA_DISABLE_*JIT", figures, Where::cuda, "0"},
    {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", figures, Where::cuda, "100"},
    {"CUDA_SCALE_LAUNCH_QUEUES", figures, Where::cuda},
    {"NCCL_DEBUG*", std::nullopt},
    {"NCCL_HOSTID", std::nullopt},
    {"NCCL_COMM_ID", std::nullopt},
    {"NCCL_*", figures, Where::nccl},
    {"ASSAY_ISA", figures, Where::cpu},
    {"DNNL_*", figures, Where::cpu},
    {"ONEDNN_*", figures, Where::cpu},
    {"OPENBLAS_*", figures, Where::cpu},
    {"BLIS_*", figures, Where::cpu},
    {"MKL_*", figures, Where::cpu},
    {"OMP_DYNAMIC", figures, Where::cpu, "false"},
    {"OMP_THREAD_LIMIT", figures, Where::cpu},
    {"OMP_WAIT_POLICY", figures, Where::cpu},
    {"GOMP_SPINCOUNT", figures, Where::cpu},
    {"OMPI_MCA_btl_tcp_if_*", std::nullopt},
    {"OMPI_MCA_btl*", figures, Where::mpi},
    {"OMPI_MCA_coll*", figures, Where::mpi},
    {"OMPI_MCA_mtl*", figures, Where::mpi},
    {"OMPI_MCA_pml*", figures, Where::mpi},
    {"UCX_*", figures, Where::mpi},
    {"FI_*", figures, Where::mpi},
    {"GLIBC_TUNABLES", figures},
};

// Null if figures do not depend on the variable.
const Row* row_of(std::string_view name) {
  const auto same = [](char a, char b) { return a == b; };
  const auto row = std::ranges::find_if(rows, [&](const Row& one) { return glob_matches(one.names, name, same); });
  return row == std::end(rows) || !row->effect ? nullptr : &*row;
}

bool counts(Where where, DeviceKind device, int ranks) {
  switch (where) {
    case Where::anywhere: return true;
    case Where::cpu: return device == DeviceKind::cpu;
    case Where::mpi: return device == DeviceKind::cpu && ranks > 1;
    case Where::cuda: return device == DeviceKind::cuda;
    case Where::nccl: return device == DeviceKind::cuda && ranks > 1;
  }
  return true;
}

bool is_neutral(const Row& row, std::string_view value) {
  return !row.neutral.empty() &&
         std::ranges::equal(value, row.neutral, [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

}  // namespace

bool changes_figures(std::string_view name) { return row_of(name) != nullptr; }

std::vector<Setting> settings_here(DeviceKind device, int ranks) {
  std::vector<Setting> found;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
    const Row* row = row_of(name);
    if (row && counts(row->where, device, ranks) && !is_neutral(*row, value))
      found.push_back({one_line(name),
                       is_secret(name, value) ? std::string(secret_mask) : one_line(value, max_value_bytes),
                       *row->effect});
  }
  std::ranges::sort(found, {}, &Setting::name);
  return found;
}

void refuse_other_precision(DeviceKind device) {
  std::vector<std::string> set, names;
  for (const Setting& setting : settings_here(device, std::numeric_limits<int>::max())) {
    if (setting.effect != precision) continue;
    set.push_back(fmt::format("{}={}", setting.name, setting.value));
    names.push_back(setting.name);
  }
  if (!set.empty())
    throw UsageError(fmt::format("{}: libraries would compute in another precision than the cases name: unset {}",
                                 fmt::join(set, ", "), fmt::join(names, " ")));
}

}  // namespace assay
