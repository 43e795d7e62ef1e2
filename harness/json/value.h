// A value of a JSON text as simdjson parsed it, valid while its parser is. The requested value must exist: each
// function throws Mismatch if it is of another type.
#pragma once

#include "harness/json/shared.h"

#include <simdjson.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// A value of an unexpected type, with the place of the member: "metrics[0].value", "not a number".
struct Mismatch {
  std::string place;
  std::string what;

  void inside(std::string_view name) {
    place = std::string(name) + (place.empty() || place[0] == '[' ? "" : ".") + place;
  }
  std::string text() const { return place.empty() ? what : place + ": " + what; }
};

class JsonValue {
 public:
  JsonValue(simdjson::dom::element element, JsonPool* pool) : element_(element), pool_(pool) {}

  bool is_null() const { return element_.is_null(); }
  bool is_list() const { return element_.is_array(); }
  bool is_object() const { return element_.is_object(); }
  bool is_string() const { return element_.is_string(); }
  bool is_boolean() const { return element_.is_bool(); }
  // Written without fraction and exponent.
  bool is_integer() const { return element_.is_int64() || element_.is_uint64(); }

  std::string_view string() const { return get<std::string_view>("a string"); }
  bool boolean() const { return get<bool>("true or false"); }
  double number() const { return get<double>("a number"); }
  // An int is never negative.
  template <std::integral T>
  T integer() const {
    if constexpr (std::same_as<T, std::uint64_t>) return get<std::uint64_t>("an integer from 0 on");
    if (element_.is_uint64() && !element_.is_int64()) fail("an integer of 64 bits");
    const auto value = get<std::int64_t>("an integer");
    if (std::same_as<T, int> && (value < 0 || !std::in_range<int>(value))) fail("an integer of 31 bits");
    return static_cast<T>(value);
  }

  // each(name, value), each(value).
  void members(auto each) const {
    for (const auto& [name, element] : get<simdjson::dom::object>("an object")) {
      try {
        each(name, JsonValue(element, pool_));
      } catch (Mismatch& mismatch) {
        mismatch.inside(name);
        throw;
      }
    }
  }
  void elements(const char* wanted, auto each) const {
    for (const simdjson::dom::element element : get<simdjson::dom::array>(wanted)) each(JsonValue(element, pool_));
  }
  // A member of an object; calls each(value) if it is there, and returns whether it is.
  bool member(std::string_view name, auto each) const {
    simdjson::dom::element element;
    if (get<simdjson::dom::object>("an object").at_key(name).get(element)) return false;
    try {
      each(JsonValue(element, pool_));
    } catch (Mismatch& mismatch) {
      mismatch.inside(name);
      throw;
    }
    return true;
  }

  std::string text() const { return simdjson::minify(element_); }
  // Where equal parts of the text are shared; may be null.
  JsonPool* pool() const { return pool_; }
  [[noreturn]] static void fail(const char* wanted) { throw Mismatch{"", std::string("not ") + wanted}; }

 private:
  template <typename T>
  T get(const char* wanted) const {
    T value;
    if (element_.get(value)) fail(wanted);
    return value;
  }

  simdjson::dom::element element_;
  JsonPool* pool_;
};

}  // namespace assay
