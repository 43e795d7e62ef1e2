#include "workloads/ops/cuda/cudnn/kept_plans.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "workloads/ops/algorithm_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <system_error>

namespace assay::ops::cudnn {

namespace {

constexpr std::uintmax_t max_bytes = std::uintmax_t{64} << 20;

// Begins a file: a plan for another GPU or graph must not be taken because two names have one hash.
std::string head_of(const std::string& key, const std::string& name) { return fmt::format("{}\n{}\n", key, name); }

// Empty: none is kept.
std::filesystem::path file_of(const std::string& head) {
  const char* folder = std::getenv("ASSAY_CACHE");
  if (head.starts_with('\n') || !folder || !*folder || by_heuristics()) return {};
  return std::filesystem::path(folder) / "algorithms" / "plans" /
         fmt::format("{:016x}", std::hash<std::string>()(head));
}

}  // namespace

void keep_plan(const std::string& key, const std::string& name, std::string_view plan) {
  const std::string head = head_of(key, name);
  const std::filesystem::path file = file_of(head);
  if (file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  try {
    replace_file(file, head + std::string(plan));
  } catch (const Error&) {  // the next process compiles it again
  }
}

std::string read_kept_plan(const std::string& key, const std::string& name) {
  const std::string head = head_of(key, name);
  const std::filesystem::path file = file_of(head);
  std::error_code error;
  if (file.empty() || !std::filesystem::exists(file, error)) return {};
  try {
    const std::string text = read_whole(file, max_bytes);
    return text.starts_with(head) ? text.substr(head.size()) : std::string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace assay::ops::cudnn
