// Which data a case reads: the user's path, or a set made here.
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

// What a user's path holds. Empty `problem`: it can be used for `kind`. `other_kind`: it holds data of the other kind,
// which makes the case a skip, so that one path can be set for a plan that has both kinds.
struct PathCheck {
  std::string problem;
  bool other_kind = false;
};
// Looks at the path once a process.
const PathCheck& check_path(Kind kind, const std::string& path);

struct Source {
  std::string path;      // that is read
  std::string data_set;  // as the protocol names it: for a generated set its hash
  std::string remark;    // for readers; empty when there is none
};
// Makes the generated set when it is asked for and not in the cache.
Source provide(Kind kind, const std::string& path, const Context& context, int threads);

// Why a data set of this many bytes cannot be read from the page cache; nothing when it can.
std::optional<std::string> not_warm(std::uint64_t bytes);
// Flags a warm measurement whose files the page cache does not hold at its end. Looks at no more than 4096 of them.
void flag_eviction(const std::vector<std::string>& files, Context& context);

}  // namespace assay::dataloader
