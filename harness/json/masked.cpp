#include "harness/json/masked.h"

#include "harness/core/error.h"
#include "harness/core/secrets.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

namespace {

// Whether the last word of a command goes on in the next one: after "--api-key", "Bearer".
bool begins_secret(const std::string& word) {
  constexpr std::size_t longest = 256;
  constexpr std::string_view probe = "x1y2z3x1y2z3x1y2z3x1y2z3";
  if (word.empty() || word.size() > longest) return false;
  return mask_secrets(word + " " + std::string(probe)) == word + " " + std::string(secret_mask);
}

// What stands between "Authorization:" and the secret.
bool is_scheme(const std::string& word) {
  constexpr auto schemes = std::to_array<std::string_view>({"apikey", "basic", "bearer", "digest", "token"});
  return std::ranges::find(schemes, lower_case(word)) != schemes.end();
}

// `of_user`: the names are the user's own, so that "key" is not the key of a case.
void mask(Json& json, bool of_user) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (holds_secret(text)) text = mask_secrets(text);
  } else if (json.is_object()) {
    for (auto& [name, value] : json.get_ref<Json::object_t&>()) {
      if (value.is_string() && (of_user || name != "key") && is_secret(name, value.get_ref<const std::string&>()))
        value = secret_mask;
      else
        mask(value, name == "labels");
    }
  } else if (json.is_array()) {
    bool expected = false;  // the word before begins a secret
    for (Json& one : json) {
      mask(one, false);
      const auto* const word = one.get_ptr<const std::string*>();
      const bool scheme = expected && word && is_scheme(*word);
      const bool secret = expected && !scheme && word && *word != secret_mask && !word->starts_with('-');
      expected = scheme || (word && !secret && begins_secret(*word));
      if (secret) one = secret_mask;
    }
  }
}

}  // namespace

Json masked(Json json) {
  mask(json, false);
  return json;
}

std::string masked_line(std::string_view line) {
  if (!holds_secret(line)) return std::string(line);
  try {
    return dump_line(masked(parse_untrusted(line)));
  } catch (const Error&) {
    return mask_secrets(line);
  }
}

}  // namespace assay
