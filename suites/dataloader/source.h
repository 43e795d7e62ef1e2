// The data that a case reads: the user's path, or a generated set.
#pragma once

#include "harness/plan/case.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::dataloader {

enum class Kind { image, token };
constexpr auto words(Kind) { return std::to_array<std::string_view>({"image", "token"}); }
enum class Stage { read, decode, augment, batch, all };
constexpr auto words(Stage) { return std::to_array<std::string_view>({"read", "decode", "augment", "batch", "all"}); }
enum class Cache { warm, cold };
constexpr auto words(Cache) { return std::to_array<std::string_view>({"warm", "cold"}); }

inline constexpr const char* generated_path = "generated";
inline constexpr std::int64_t window_length = 1024;  // tokens

// The contents of a user's path. `problem` is empty if they can be used for `kind`. `other_kind`: they are data of the
// other kind, so the case is skipped; one path can then be set for a plan that has both kinds.
struct PathCheck {
  std::string problem;
  bool other_kind = false;
};
// Looks at the path once per process.
const PathCheck& check_path(Kind kind, const std::string& path);

struct Source {
  std::string path;      // to be read
  std::string data_set;  // its name in the protocol: the hash of a generated set
  std::string remark;    // for readers; may be empty
};
// Generates the set if it is requested and not in the cache.
Source provide(Kind kind, const std::string& path, const Context& context, int threads);

// Why a data set of this many bytes cannot be read from the page cache; nullopt if it can.
std::optional<std::string> not_warm(std::uint64_t bytes);
// Flags a warm measurement if its files are no longer in the page cache at its end. Looks at 4096 files at most.
void flag_eviction(const std::vector<std::string>& files, Context& context);

}  // namespace assay::dataloader
