// A value of a JSON text as simdjson parsed it, valid while its parser is. The requested value must exist: each
// function throws Mismatch if it is of another type.
#pragma once

#include "harness/json/shared.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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
  bool is_null() const;
  bool is_list() const;
  bool is_object() const;
  bool is_string() const;
  bool is_boolean() const;
  // Written without fraction and exponent.
  bool is_integer() const;

  std::string_view string() const;
  bool boolean() const;
  double number() const;
  // An int is never negative.
  template <std::integral T>
  T integer() const {
    if constexpr (std::same_as<T, std::uint64_t>) return unsigned_integer();
    const std::int64_t value = signed_integer();
    if (std::same_as<T, int> && (value < 0 || !std::in_range<int>(value))) fail("an integer of 31 bits");
    return static_cast<T>(value);
  }

  // each(name, value), each(value).
  void members(auto each) const {
    for_members([](void* user, std::string_view name,
                   const JsonValue& value) { (*static_cast<decltype(each)*>(user))(name, value); },
                &each);
  }
  void elements(const char* wanted, auto each) const {
    for_elements(
        wanted, [](void* user, const JsonValue& value) { (*static_cast<decltype(each)*>(user))(value); }, &each);
  }
  // A member of an object; calls each(value) if it is there, and returns whether it is.
  bool member(std::string_view name, auto each) const {
    const std::optional<JsonValue> found = find(name);
    if (!found) return false;
    try {
      each(*found);
    } catch (Mismatch& mismatch) {
      mismatch.inside(name);
      throw;
    }
    return true;
  }

  std::string text() const;
  // Where equal parts of the text are shared; may be null.
  JsonPool* pool() const { return pool_; }
  [[noreturn]] static void fail(const char* wanted) { throw Mismatch{"", std::string("not ") + wanted}; }

 private:
  friend void use_text(std::string_view text, JsonPool* pool, const std::function<void(const JsonValue&)>& use);
  // Simdjson's element as bytes, as its header takes seconds to compile.
  using Element = std::array<std::byte, 16>;
  JsonValue(const Element& element, JsonPool* pool) : element_(element), pool_(pool) {}

  void for_members(void (*use)(void* user, std::string_view name, const JsonValue& value), void* user) const;
  void for_elements(const char* wanted, void (*use)(void* user, const JsonValue& value), void* user) const;
  std::optional<JsonValue> find(std::string_view name) const;
  std::uint64_t unsigned_integer() const;
  std::int64_t signed_integer() const;

  Element element_;
  JsonPool* pool_;
};

// Parses text and calls use(value). Throws Error for text that is not JSON, is nested deeper than 64, or has a member
// of a wrong type. Equal parts of type SharedJson share one value of the pool.
void use_text(std::string_view text, JsonPool* pool, const std::function<void(const JsonValue&)>& use);

}  // namespace assay
