// Reads members of a model's file into variables.
#pragma once

#include "harness/json/json.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::transformer {

// Beyond any model so far; a step of that many layers is still planned in seconds.
inline constexpr std::int64_t max_layers = 1024;

// A member that is there and not null.
inline std::optional<Cursor> given(const Cursor& cursor, std::string_view name) {
  const auto member = cursor.find(name);
  return member && !member->json().is_null() ? member : std::nullopt;
}

class ConfigReader {
 public:
  // `null_is_absent`: for optional members, as in Hugging Face's files; else null is a value of the wrong kind.
  explicit ConfigReader(const Cursor& cursor, bool null_is_absent = false)
      : cursor_(cursor), null_is_absent_(null_is_absent) {}

  // Required.
  void size(const char* name, std::int64_t& value, std::int64_t min = 1, std::int64_t max = max_size) const {
    if (const auto member = cursor_.need(name))
      if (const auto read = member->integer(min, max)) value = *read;
  }
  void need_real(const char* name, double& value, double min, double max) const {
    if (cursor_.need(name)) real(name, value, min, max);
  }
  // Optional.
  void size_or(const char* name, std::int64_t& value, std::int64_t fallback, std::int64_t min = 1) const {
    value = fallback;
    if (const auto member = optional(name))
      if (const auto read = member->integer(min, max_size)) value = *read;
  }
  void flag(const char* name, bool& value) const {
    if (const auto member = optional(name))
      if (const auto read = member->flag()) value = *read;
  }
  void real(const char* name, double& value, double min, double max) const {
    if (const auto member = optional(name))
      if (const auto read = member->number(min, max)) value = *read;
  }
  template <typename Enum, std::size_t n>
  void choice(const char* name, Enum& value, const std::array<std::pair<const char*, Enum>, n>& choices) const {
    const auto member = cursor_.need(name);
    if (!member) return;
    std::vector<std::string> names;
    names.reserve(n);
    for (const auto& [text, meaning] : choices) names.emplace_back(text);
    const auto read = member->choice(names);
    if (!read) return;
    for (const auto& [text, meaning] : choices)
      if (*read == text) value = meaning;
  }

 private:
  static constexpr std::int64_t max_size = std::int64_t{1} << 24;

  std::optional<Cursor> optional(const char* name) const {
    return null_is_absent_ ? given(cursor_, name) : cursor_.find(name);
  }

  const Cursor& cursor_;
  bool null_is_absent_;
};

}  // namespace assay::transformer
