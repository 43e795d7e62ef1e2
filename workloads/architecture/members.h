// Members of a config.json: those read are remembered, so that the rest can be named.
#pragma once

#include "harness/json/json.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::architecture {

class Members {
 public:
  explicit Members(const Cursor& cursor) : cursor_(cursor) {}

  // A member that is there and not null.
  std::optional<Cursor> given(std::string_view name);
  // Required; 1 with a problem if it is missing.
  std::int64_t size(const char* name, std::int64_t max = max_size);
  // Null is like absent.
  std::int64_t size_or(const char* name, std::int64_t fallback, std::int64_t min = 1);
  bool flag_or(const char* name, bool fallback);
  // Integers of a list; nothing if it is absent.
  std::optional<std::vector<std::int64_t>> sizes(const char* name);
  std::optional<std::vector<std::string>> texts(const char* name);
  // A problem unless a divides b: "num_attention_heads".
  void divides(const char* name, std::int64_t a, std::int64_t b);

  // Names that were not read and are not known to leave the memory as it is.
  std::vector<std::string> unknown() const;
  const Cursor& cursor() const { return cursor_; }

 private:
  static constexpr std::int64_t max_size = std::int64_t{1} << 24;

  Cursor cursor_;
  std::set<std::string, std::less<>> read_;
};

inline constexpr std::int64_t max_layers = 1024;  // beyond any model so far

}  // namespace assay::architecture
