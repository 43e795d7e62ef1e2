// Loads OpenBLAS or BLIS, and sets OpenBLAS's core type from CPUID if its own detection picks a weaker one.
#include "workloads/ops/cpu/blas_library.h"

#include "harness/core/program.h"
#include "harness/device/cpu/cpuid.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

namespace assay::ops {

namespace {

constexpr const char* core_variable = "OPENBLAS_CORETYPE";

template <typename F>
F function(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

std::string word_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + word.size());
  return std::string(rest.substr(0, rest.find(' ')));
}

std::string openblas_core(void* library) {
  const auto name = function<char* (*)()>(library, "openblas_get_corename");
  return name ? name() : "";
}

std::optional<BlasLibrary> load_openblas(const std::string& file, std::vector<std::string>& tried) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    tried.push_back(dlerror());
    return std::nullopt;
  }
  const auto parallel = function<int (*)()>(library, "openblas_get_parallel");
  if (!parallel || parallel() == 1) {  // 0 sequential, 1 its own threads, 2 OpenMP
    tried.push_back(file + " is not built for OpenMP, so its threads could not be bound: install libopenblas0-openmp");
    dlclose(library);
    return std::nullopt;
  }
  BlasLibrary blas;
  blas.name = "OpenBLAS";
  blas.detected = openblas_core(library);
  const BlasLevel allowed = cpu_blas_level();
  if (blas_level(blas.detected) < allowed && !std::getenv(core_variable)) {
    // The core type is read when the library is loaded, so load it again.
    dlclose(library);
    setenv(core_variable, openblas_core_for(allowed).c_str(), 1);
    library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    unsetenv(core_variable);
    if (!library) {
      tried.push_back(dlerror());
      return std::nullopt;
    }
  }
  blas.core = openblas_core(library);
  const auto config = function<char* (*)()>(library, "openblas_get_config");
  blas.version = config ? word_after(config(), "OpenBLAS ") : "";
  blas.dgemm = function<BlasLibrary::Dgemm>(library, "cblas_dgemm");
  if (!blas.dgemm) {
    tried.push_back(file + " has no cblas_dgemm");
    return std::nullopt;
  }
  return blas;
}

std::optional<BlasLibrary> load_blis(const std::string& file, std::vector<std::string>& tried) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    tried.push_back(dlerror());
    return std::nullopt;
  }
  BlasLibrary blas;
  blas.name = "BLIS";
  const auto version = function<const char* (*)()>(library, "bli_info_get_version_str");
  const auto arch = function<int (*)()>(library, "bli_arch_query_id");
  const auto arch_name = function<const char* (*)(int)>(library, "bli_arch_string");
  blas.version = version ? version() : "";
  blas.core = arch && arch_name ? arch_name(arch()) : "";
  blas.detected = blas.core;
  blas.set_threads = function<void (*)(long)>(library, "bli_thread_set_num_threads");
  blas.dgemm = function<BlasLibrary::Dgemm>(library, "cblas_dgemm");
  if (!blas.dgemm || !blas.set_threads) {
    tried.push_back(file + " lacks cblas_dgemm or bli_thread_set_num_threads");
    return std::nullopt;
  }
  return blas;
}

}  // namespace

BlasLevel blas_level(const std::string& core) {
  static const std::map<BlasLevel, std::set<std::string_view>> cores{
      {BlasLevel::avx512, {"SkylakeX", "Cooperlake", "SapphireRapids", "skx", "knl", "zen4", "zen5"}},
      {BlasLevel::avx2, {"Haswell", "Zen", "Excavator", "haswell", "zen", "zen2", "zen3", "excavator"}},
      {BlasLevel::avx,
       {"Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "sandybridge", "bulldozer", "piledriver",
        "steamroller"}}};
  for (const auto& [level, names] : cores)
    if (names.contains(core)) return level;
  return BlasLevel::other;
}

BlasLevel cpu_blas_level() {
  const cpu::InstructionSets& sets = cpu::instruction_sets();
  if (sets.avx512f && sets.avx512dq && sets.avx512bw && sets.avx512vl) return BlasLevel::avx512;
  if (sets.avx2 && sets.fma) return BlasLevel::avx2;
  return sets.avx ? BlasLevel::avx : BlasLevel::other;
}

std::string openblas_core_for(BlasLevel level) {
  switch (level) {
    case BlasLevel::avx512: return "SkylakeX";
    case BlasLevel::avx2: return "Haswell";
    case BlasLevel::avx: return "Sandybridge";
    case BlasLevel::other: break;
  }
  return {};
}

std::string BlasLibrary::text() const {
  const std::string corrected = detected == core ? "" : fmt::format("; by itself it chose {}", detected);
  return fmt::format("{} {} ({}{})", name, version, core, corrected);
}

std::string BlasLibrary::isa() const {
  switch (blas_level(core)) {
    case BlasLevel::avx512: return "avx512";
    case BlasLevel::avx2: return "avx2";
    case BlasLevel::avx: return "avx";
    case BlasLevel::other: break;
  }
  return core.empty() ? "unknown" : core;
}

std::optional<BlasLibrary> load_blas(std::vector<std::string>& tried) {
  // A package's own, then Debian's OpenMP build by its path, since its alternatives decide what `libopenblas.so.0` is;
  // then Fedora's name.
  const std::string own = (program_file().parent_path().parent_path() / "lib").string(), system = ASSAY_LIBRARY_FOLDER;
  const std::string openblas = "/openblas-openmp/libopenblas.so.0", blis = "/blis-openmp/libblis.so.4";
  std::optional<BlasLibrary> found;
  for (const std::string& file :
       {own + openblas, system + openblas, std::string("libopenblaso.so.0"), std::string("libopenblas.so.0")})
    if (!found) found = load_openblas(file, tried);
  if (found && blas_level(found->core) >= cpu_blas_level()) return found;
  std::optional<BlasLibrary> other;
  for (const std::string& file : {own + blis, system + blis, std::string("libblis.so.4")})
    if (!other) other = load_blis(file, tried);
  if (other && (!found || blas_level(other->core) > blas_level(found->core))) return other;
  return found;
}

}  // namespace assay::ops
