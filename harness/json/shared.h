// A JSON value that copies share, with copy on write: the parameters and protocols of a thousand runs are a few hundred
// different values.
#pragma once

#include "harness/json/fwd.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace assay {

class SharedJson {
 public:
  SharedJson() = default;  // null
  SharedJson& operator=(Json value) {
    value_ = std::make_shared<Json>(std::move(value));
    return *this;
  }

  operator const Json&() const { return get(); }
  const Json& get() const { return value_ ? *value_ : null(); }

  // Reading.
  bool is_null() const { return get().is_null(); }
  bool is_object() const { return get().is_object(); }
  bool empty() const { return get().empty(); }
  std::size_t size() const { return get().size(); }
  bool contains(std::string_view name) const { return get().contains(name); }
  auto find(std::string_view name) const { return get().find(name); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }
  auto items() const { return get().items(); }
  const Json& at(std::string_view name) const { return get().at(std::string(name)); }
  const Json& operator[](std::string_view name) const { return get()[std::string(name)]; }
  template <typename T>
  auto value(std::string_view name, T otherwise) const {
    return get().value(std::string(name), std::move(otherwise));
  }
  std::string dump(int indent = -1, char fill = ' ', bool ascii = false,
                   Json::error_handler_t errors = Json::error_handler_t::strict) const {
    return get().dump(indent, fill, ascii, errors);
  }

  // Writing.
  Json& operator[](std::string_view name) {
    if (!value_ || value_.use_count() > 1) value_ = std::make_shared<Json>(get());
    return (*value_)[std::string(name)];
  }

 private:
  static const Json& null() {
    static const Json none;
    return none;
  }

  std::shared_ptr<Json> value_;
};

// Equal texts give the same value. Not thread-safe.
class JsonPool {
 public:
  // `text` must be JSON.
  const SharedJson& get(std::string_view text);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, SharedJson, Hash, std::equal_to<>> values_;
};

}  // namespace assay
