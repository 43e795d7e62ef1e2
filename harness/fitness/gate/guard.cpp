#include "harness/fitness/gate/guard.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/core/program.h"
#include "harness/core/text.h"
#include "harness/core/trust.h"
#include "harness/fitness/floors/floors.h"
#include "harness/machine/root.h"
#include "harness/process/ask.h"
#include "harness/process/privileges.h"
#include "harness/run/run.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace assay::gate {

namespace fs = std::filesystem;

namespace {

constexpr const char* left_out_variable = "ASSAY_GATE_LEFT_OUT";

// The devices of NVIDIA's driver that a program which computes opens.
std::vector<std::string> gpu_devices() {
  std::vector<std::string> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", none)) {
    const std::string name = entry.path().filename().string();
    const bool numbered = name.starts_with("nvidia") && name.size() > 6 && std::isdigit(name[6]) != 0;
    if (numbered || name == "nvidiactl" || name == "nvidia-uvm") found.push_back(entry.path().string());
  }
  return found;
}

// Tried in a process of nobody's: what it cannot reach there, a test could not either.
std::string why_not_nobody(bool gpus) {
  constexpr double max_seconds = 5;
  const std::vector<fs::path> needed{program_file(), configs_dir() / "gate.json", user_root().path()};
  const std::string module = gpus ? Module::find("cuda") : std::string();
  const auto tried = [&] {
    become_nobody();
    const auto closed = [](const std::string& path, int how) {
      return ::access(path.c_str(), how) == 0 ? std::string() : fmt::format("{}: {}", path, std::strerror(errno));
    };
    for (const fs::path& path : needed)
      if (std::string why = closed(path.string(), R_OK); !why.empty()) return why;
    for (const std::string& device : gpus ? gpu_devices() : std::vector<std::string>())
      if (std::string why = closed(device, R_OK | W_OK); !why.empty()) return why;
    return module.empty() || dlopen(module.c_str(), RTLD_LAZY | RTLD_LOCAL) ? std::string() : std::string(dlerror());
  };
  const ChildAnswer answer = ask_child(tried, max_seconds);
  return answer.text ? *answer.text : answer.problem;
}

}  // namespace

std::string leave_environment(const std::vector<std::string>& words) {
  if (!as_root()) return {};
  ::umask(::umask(S_IWGRP | S_IWOTH) | S_IWGRP | S_IWOTH);
  std::vector<std::string> left_out, entries;
  for (const auto& [name, value] : trusted_variables(left_out)) entries.push_back(name + "=" + value);
  std::size_t same = 0, all = 0;
  for (char** entry = environ; *entry; ++entry, ++all) same += std::ranges::count(entries, std::string_view(*entry));
  if (same == entries.size() && all == same) {
    const char* names = std::getenv(left_out_variable);
    return names && *names ? fmt::format("as root, not taken from the environment: {}", one_line(names))
                           : std::string();
  }
  std::erase_if(entries, [](const std::string& one) { return one.starts_with(left_out_variable); });
  if (!left_out.empty()) entries.push_back(fmt::format("{}={}", left_out_variable, fmt::join(left_out, ", ")));
  std::vector<std::string> arguments = words;
  const std::string program = program_command().string();
  arguments.front() = program;
  std::vector<char*> argument_list, entry_list;
  for (std::string& one : arguments) argument_list.push_back(one.data());
  for (std::string& one : entries) entry_list.push_back(one.data());
  argument_list.push_back(nullptr);
  entry_list.push_back(nullptr);
  ::execve(program.c_str(), argument_list.data(), entry_list.data());
  throw Error(fmt::format("cannot start {} again: {}", program, std::strerror(errno)));
}

void refuse_untrusted(const std::string& floors, std::initializer_list<std::pair<const char*, std::string>> files) {
  if (!as_root()) return;
  require_trusted("the configuration", configs_dir());
  std::error_code error;
  for (fs::recursive_directory_iterator entry(configs_dir(), error), end; !error && entry != end;
       entry.increment(error))
    require_trusted("the configuration", entry->path());
  for (const char* name : {"ASSAY_MODULE_PATH", "ASSAY_ROOT"})
    if (const char* path = std::getenv(name); path && *path) require_trusted(name, path);
  if (!floors.empty()) require_trusted("gate: --floors " + floors, fitness::floors_file(floors));
  for (const auto& [flag, file] : files)
    if (!file.empty()) require_trusted(fmt::format("gate: {} {}", flag, file), file);
}

Computing computing_for(const fs::path& workspace, bool gpus) {
  if (!as_root()) return {};
  Computing all;
  const std::string why = why_not_nobody(gpus);
  if (why.empty())
    all.variables["ASSAY_NOBODY"] = "1";
  else
    all.remark = "tests compute as root: " + why;
  fs::path cache = cache_folder();
  if (!why_untrusted(cache).empty()) cache = workspace;
  if (why.empty()) {
    cache /= "nobody";
    std::error_code error;
    fs::create_directories(cache, error);
    ::chmod(workspace.c_str(), 0711);  // to reach what lies below
    if (error || ::lchown(cache.c_str(), nobody, nobody) != 0 || ::chmod(cache.c_str(), 0700) != 0)
      cache.clear();  // then nothing is kept for the next gate
  }
  all.variables["ASSAY_CACHE"] = cache.empty() ? workspace.string() : cache.string();
  return all;
}

}  // namespace assay::gate
