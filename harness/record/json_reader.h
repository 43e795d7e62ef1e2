// Reads members of an untrusted JSON object: absent and null members take defaults, a wrong type is an error that names
// the member.
#pragma once

#include "harness/core/json.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class JsonReader {
 public:
  // `path` names the object in messages ("samples"); empty for the document. Throws Error if it is not an object.
  JsonReader(const Json& json, std::string path);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::vector<std::string> names() const;
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  bool flag(std::string_view name, bool otherwise) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::uint64_t unsigned_integer(std::string_view name, std::uint64_t otherwise) const;
  // An integer within [0, 2^31).
  int small(std::string_view name, int otherwise) const;
  std::optional<double> maybe_real(std::string_view name) const;
  // Nulls within the list become NaN.
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::optional<double>> maybe_reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  Json object(std::string_view name) const;
  // An absent object reads as an empty one.
  JsonReader child(std::string_view name) const;
  std::vector<JsonReader> children(std::string_view name) const;

 private:
  const Json* find(std::string_view name) const;
  [[noreturn]] void wrong(std::string_view name, std::string_view expected) const;
  std::string place(std::string_view name) const;

  const Json* json_;
  std::string path_;
};

}  // namespace assay
