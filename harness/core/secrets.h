// Masks secrets (keys, tokens, passwords) in foreign text, before it is stored or printed. docs/records.md says what
// counts as one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Stands for a secret.
inline constexpr std::string_view secret_mask = "[masked]";

// The text with every secret replaced by `secret_mask`. Linear in time; a masked text stays as it is. The text may be
// JSON, whose escapes are understood.
std::string mask_secrets(std::string_view text);
// Whether mask_secrets() would change it.
bool holds_secret(std::string_view text);
// Whether this value of a variable or member of this name is a secret.
bool is_secret(std::string_view name, std::string_view value);
// How often `secret_mask` is in the text.
std::size_t count_masked(std::string_view text);

}  // namespace assay
