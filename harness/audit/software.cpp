// Software: whether driver, libraries and the user's PyTorch go together. Python is never started: versions are read
// from files.
#include "harness/audit/areas.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace assay::audit {

namespace {

// The newest CUDA that a driver supports, by its branch (NVIDIA's CUDA toolkit release notes, table of drivers).
std::string cuda_of_driver(const std::string& driver) {
  static constexpr std::array<std::pair<std::int64_t, const char*>, 11> branches = {{{580, "13.0"},
                                                                                     {575, "12.9"},
                                                                                     {570, "12.8"},
                                                                                     {565, "12.7"},
                                                                                     {560, "12.6"},
                                                                                     {555, "12.5"},
                                                                                     {550, "12.4"},
                                                                                     {545, "12.3"},
                                                                                     {535, "12.2"},
                                                                                     {530, "12.1"},
                                                                                     {525, "12.0"}}};
  const auto branch = to_integer(driver).value_or(0);
  for (const auto& [first, cuda] : branches)
    if (branch >= first && branch < first + 5) return cuda;
  return {};
}

// "2.21.5" of libnccl.so.2.21.5, libcuda.so.570.86.15.
std::string version_in_name(const std::string& name, std::string_view library) {
  if (!name.starts_with(library) || name.size() <= library.size() + 1 || name[library.size()] != '.') return {};
  auto version = name.substr(library.size() + 1);
  const bool numbers = version.find_first_not_of("0123456789.") == version.npos;
  return numbers && version.find('.') != version.npos ? version : std::string();
}

std::set<std::string> library_versions(const Root& root, std::string_view library) {
  std::set<std::string> versions;
  for (const std::string& folder : library_folders(root))
    for (const std::string& name : root.list(folder))
      if (auto version = version_in_name(name, library); !version.empty()) versions.insert(std::move(version));
  return versions;
}

// Folders of Python packages: of the environment's python3, then of usual places.
std::vector<std::string> package_folders(const Root& root) {
  std::vector<std::string> prefixes;
  if (root.real()) {
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
      if (const char* const folder = std::getenv(name)) prefixes.emplace_back(folder);
    std::string_view path = std::getenv("PATH") ? std::getenv("PATH") : "";
    while (!path.empty()) {
      const auto folder = path.substr(0, path.find(':'));
      path.remove_prefix(std::min(path.size(), folder.size() + 1));
      std::error_code failed;
      const auto python = std::filesystem::path(folder) / "python3";
      if (folder.starts_with("/") && std::filesystem::exists(python, failed)) {
        prefixes.push_back(python.parent_path().parent_path().string());
        break;
      }
    }
  }
  for (const char* usual : {"/opt/venv", "/opt/conda", "/usr/local", "/usr"}) prefixes.emplace_back(usual);
  std::vector<std::string> folders;
  for (std::string prefix : prefixes) {
    while (prefix.starts_with("/")) prefix.erase(0, 1);
    prefix += prefix.empty() ? "lib" : "/lib";
    for (const std::string& name : root.list(prefix))
      if (name.starts_with("python3"))
        for (const char* packages : {"/site-packages", "/dist-packages"})
          if (root.exists(prefix + "/" + name + packages)) folders.push_back(prefix + "/" + name + packages);
  }
  return folders;
}

// The value of "name = 'value'" or "name: Optional[str] = 'value'" in a Python file.
std::string assigned(const std::string& text, std::string_view name) {
  for (const std::string& line : lines(text)) {
    const auto equals = line.find('=');
    if (!line.starts_with(name) || equals == line.npos) continue;
    if (const auto after = line.substr(name.size(), 1); after != " " && after != ":" && after != "=") continue;
    auto value = trim(std::string_view(line).substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front())
      return std::string(value.substr(1, value.size() - 2));
    return {};  // None
  }
  return {};
}

void audit_torch(const Subject& subject, const std::set<std::string>& system_nccl, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  for (const std::string& folder : package_folders(root)) {
    const auto text = root.text(folder + "/torch/version.py");
    if (!text) continue;
    const auto version = assigned(*text, "__version__"), cuda = assigned(*text, "cuda"), hip = assigned(*text, "hip");
    report.fact("torch", version);
    report.fact("torch cuda", cuda);
    const bool with_gpus = !machine.gpus.empty();
    if (with_gpus && cuda.empty() && hip.empty())
      report.add("torch-without-cuda", "", fmt::format("torch {} in /{}", version, folder));
    auto newest = machine.system.nvidia_cuda;
    if (newest.empty()) newest = cuda_of_driver(machine.system.nvidia_driver);
    // Within a major version, a program of a newer minor version runs too (CUDA's minor version compatibility).
    if (with_gpus && to_integer(newest) && to_integer(cuda) && *to_integer(cuda) > *to_integer(newest))
      report.add("torch-needs-newer-driver", "",
                 fmt::format("torch {} for CUDA {}, driver {} for CUDA up to {}", version, cuda,
                             machine.system.nvidia_driver, newest));
    for (const std::string& name : root.list(folder)) {
      if (!name.starts_with("nvidia_nccl_cu") || !name.ends_with(".dist-info")) continue;
      const auto dash = name.find('-');
      const auto bundled = name.substr(dash + 1, name.size() - dash - 11);
      report.fact("torch nccl", bundled);
      const auto own = machine.cuda_libraries.find("nccl");
      std::set<std::string> others = system_nccl;
      if (own != machine.cuda_libraries.end()) others.insert(own->second);
      if (with_gpus && !others.empty() && !others.contains(bundled))
        report.add("torch-nccl", "", fmt::format("torch's {}, the system's {}", bundled, *others.rbegin()));
    }
    return;  // the first is the one that python3 finds
  }
}

// Versions of packages that move figures. Debian's list; of others, nothing.
std::map<std::string, std::string> packages(const Root& root) {
  static constexpr std::array<std::string_view, 16> wanted = {"nvidia-fabricmanager",
                                                              "nvidia-driver",
                                                              "nvidia-imex",
                                                              "libnccl2",
                                                              "libnccl-net",
                                                              "libcudnn",
                                                              "cuda-toolkit",
                                                              "datacenter-gpu-manager",
                                                              "openmpi-bin",
                                                              "libibverbs1",
                                                              "rdma-core",
                                                              "ofed-scripts",
                                                              "doca-ofed",
                                                              "efa",
                                                              "slurmd",
                                                              "nvidia-container-toolkit"};
  std::map<std::string, std::string> found;
  std::string name;
  bool installed = false;
  for (const std::string& line : lines(root.text("var/lib/dpkg/status").value_or(""))) {
    if (line.starts_with("Package: ")) {
      name = line.substr(9);
      installed = false;
    }
    if (line.starts_with("Status: ")) installed = line.ends_with(" installed");
    if (line.starts_with("Version: ") && installed &&
        std::ranges::any_of(wanted, [&](std::string_view start) { return name.starts_with(start); }))
      found[name] = line.substr(9);
  }
  return found;
}

}  // namespace

void audit_software(const Subject& subject, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  const auto& driver = machine.system.nvidia_driver;
  report.fact("driver", driver);
  report.fact("cuda", machine.system.nvidia_cuda);
  for (const auto& [name, version] : machine.cuda_libraries) report.fact(name, version);

  const auto nccl = library_versions(root, "libnccl.so");
  if (!nccl.empty()) report.fact("nccl", *nccl.rbegin());
  const auto loaded = driver;
  const auto drivers = library_versions(root, "libcuda.so");
  if (!loaded.empty() && !drivers.empty() && !drivers.contains(loaded))
    report.add("driver-library-mismatch", "",
               fmt::format("driver {} is loaded, libcuda.so is of {}", loaded, *drivers.rbegin()));
  audit_torch(subject, nccl, report);

  for (const auto& [name, version] : packages(root)) {
    report.fact("package " + name, version);
    if (name.starts_with("nvidia-fabricmanager") && !loaded.empty() && has_nvswitch(root) &&
        !version.starts_with(loaded))
      report.add("fabric-manager-version", "", fmt::format("{} {}, driver {}", name, version, loaded));
  }
}

}  // namespace assay::audit
