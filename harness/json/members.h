// Structs to JSON and back. A struct lists its members once, for both ways:
//   static void members(auto& self, auto& io) { io("name", self.name), io.sparse("log", self.log); }
// A type with a form of its own has, beside it, `Json to_json(const T&)` and `void read(const JsonValue&, T&)`.
// What is read is untrusted: absent members and nulls keep their defaults, unknown ones are ignored, a wrong type is an
// error that names the member ("metrics[0].value: not a number"). Numbers that are not finite are null, never 0.
#pragma once

#include "harness/core/error.h"
#include "harness/core/utc.h"
#include "harness/core/words.h"
#include "harness/json/json.h"
#include "harness/json/shared.h"
#include "harness/json/value.h"

#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace assay {

namespace json_form {

template <typename T>
inline constexpr bool is_list = false;
template <typename T>
inline constexpr bool is_list<std::vector<T>> = true;
template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;
// Named values, an object in JSON: of each, its type.
template <typename T>
struct Named {};
template <typename T>
struct Named<std::map<std::string, T>> {
  using Value = T;
  static T& add(std::map<std::string, T>& to, std::string name) { return to[std::move(name)]; }
};
template <typename T>
struct Named<std::vector<std::pair<std::string, T>>> {
  using Value = T;
  static T& add(std::vector<std::pair<std::string, T>>& to, std::string name) {
    return to.emplace_back(std::move(name), T{}).second;
  }
};
template <typename T>
inline constexpr bool is_named = requires {
  typename Named<T>::Value;
};

// Only a type's own functions count, not those that it could be converted for.
void to_json() = delete;
void read() = delete;
template <typename T>
concept Written = requires(const T& value) {
  to_json(value);
};
template <typename T>
concept Read = requires(const JsonValue& from, T& to) {
  read(from, to);
};
template <Written T>
Json written(const T& value) {
  return to_json(value);
}

struct AnyIo {};
template <typename T>
concept Listed = requires(T& value, AnyIo& io) {
  T::members(value, io);
};

bool empty(const auto& value) {
  if constexpr (is_optional<std::decay_t<decltype(value)>>)
    return !value;
  else
    return value.empty();
}

}  // namespace json_form

template <typename T>
Json json_of(const T& value);
// Reads a value; null keeps what `to` holds.
template <typename T>
void read_json(const JsonValue& value, T& to);

// The argument of members() that writes an object.
class MemberWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = json_of(value);
  }
  void required(const char* name, const auto& value) { (*this)(name, value); }
  // Left out when it is empty.
  void sparse(const char* name, const auto& value) {
    if (!json_form::empty(value)) (*this)(name, value);
  }
  void null_if_empty(const char* name, const auto& value) {
    json_[name] = json_form::empty(value) ? Json(nullptr) : json_of(value);
  }
  // Unix seconds, as ISO 8601 without fractions.
  void utc(const char* name, const std::optional<double>& seconds) {
    json_[name] = seconds ? Json(utc_text(static_cast<std::time_t>(*seconds))) : Json(nullptr);
  }
  // An object of its own for members of the same struct.
  void group(const char* name, auto members) {
    MemberWriter inner;
    members(inner);
    json_[name] = std::move(inner.json_);
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

// The argument of members() that reads an object.
class MemberReader {
 public:
  explicit MemberReader(const JsonValue& object) : object_(object) {}

  template <typename T>
  bool operator()(const char* name, T& to) {
    return object_.member(name, [&](const JsonValue& value) { read_json(value, to); });
  }
  // Throws Mismatch if the object does not have it.
  void required(const char* name, auto& to) {
    if (!(*this)(name, to)) throw Mismatch{name, "missing"};
  }
  void sparse(const char* name, auto& to) { (*this)(name, to); }
  void null_if_empty(const char* name, auto& to) { (*this)(name, to); }
  void utc(const char* name, std::optional<double>& seconds) {
    std::optional<std::string> text;
    (*this)(name, text);
    const auto moment = text ? parse_utc(*text) : std::nullopt;
    if (text && !moment) throw Mismatch{name, "not a time in UTC"};
    if (moment) seconds = static_cast<double>(*moment);
  }
  void group(const char* name, auto members) {
    object_.member(name, [&](const JsonValue& value) {
      MemberReader inner(value);
      if (!value.is_null()) members(inner);
    });
  }

 private:
  const JsonValue& object_;
};

template <typename T>
Json members_json(const T& value) {
  MemberWriter io;
  T::members(value, io);
  return io.take();
}

template <typename T>
void read_members(const JsonValue& value, T& to) {
  if (!value.is_object()) JsonValue::fail("an object");
  MemberReader io(value);
  T::members(to, io);
}

template <typename T>
Json json_of(const T& value) {
  if constexpr (json_form::Written<T>) {
    return json_form::written(value);
  } else if constexpr (requires {
                         { value.to_json() } -> std::same_as<Json>;
                       }) {
    return value.to_json();
  } else if constexpr (json_form::Listed<T>) {
    return members_json(value);
  } else if constexpr (Worded<T>) {
    return Json(word_of(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else if constexpr (json_form::is_optional<T>) {
    return value ? json_of(*value) : Json(nullptr);
  } else if constexpr (json_form::is_named<T>) {
    Json json = Json::object();
    for (const auto& [name, one] : value) json[name] = json_of(one);
    return json;
  } else if constexpr (json_form::is_list<T>) {
    Json json = Json::array();
    for (const auto& one : value) json.push_back(json_of(one));
    return json;
  } else if constexpr (std::same_as<T, SharedJson>) {
    return value.is_null() ? Json::object() : value.get();
  } else {
    return Json(value);
  }
}

namespace json_form {

template <typename T>
constexpr const char* list_name() {
  if constexpr (std::same_as<T, double> || std::same_as<T, std::optional<double>>)
    return "a list of numbers";
  else if constexpr (std::same_as<T, std::string>)
    return "a list of strings";
  else if constexpr (std::integral<T>)
    return "a list of integers";
  else if constexpr (is_list<T>)
    return "a list of lists";
  else
    return "a list";
}

template <typename T>
void read_list(const JsonValue& value, std::vector<T>& to) {
  constexpr const char* wanted = list_name<T>();
  constexpr bool nullable = std::floating_point<T> || is_optional<T>;
  to.clear();
  value.elements(wanted, [&](const JsonValue& element) {
    T& read = to.emplace_back();
    if constexpr (std::floating_point<T>) read = std::numeric_limits<T>::quiet_NaN();  // if it is null
    try {
      if (!nullable && element.is_null()) throw Mismatch{"", "null"};
      read_json(element, read);
    } catch (Mismatch& mismatch) {
      if constexpr (Listed<T>) mismatch.inside("[" + std::to_string(to.size() - 1) + "]");
      if constexpr (Listed<T> || is_list<T>) throw;
      JsonValue::fail(wanted);
    }
  });
  to.shrink_to_fit();
}

}  // namespace json_form

template <typename T>
void read_json(const JsonValue& value, T& to) {
  if (value.is_null()) return;
  if constexpr (json_form::Read<T>) {
    read(value, to);
  } else if constexpr (json_form::Listed<T>) {
    read_members(value, to);
  } else if constexpr (std::same_as<T, std::string>) {
    to = value.string();
  } else if constexpr (Worded<T>) {
    const auto found = from_word<T>(value.string());
    if (!found) {
      std::string known;
      for (const std::string& word : all_words<T>()) known += (known.empty() ? "one of " : ", ") + word;
      JsonValue::fail(known.c_str());
    }
    to = *found;
  } else if constexpr (std::same_as<T, bool>) {
    to = value.boolean();
  } else if constexpr (std::floating_point<T>) {
    to = value.number();
  } else if constexpr (std::integral<T>) {
    to = value.integer<T>();
  } else if constexpr (json_form::is_optional<T>) {
    read_json(value, to.emplace());
  } else if constexpr (json_form::is_named<T>) {
    value.members([&](std::string_view name, const JsonValue& member) {
      if (!member.is_null()) read_json(member, json_form::Named<T>::add(to, std::string(name)));
    });
  } else if constexpr (json_form::is_list<T>) {
    json_form::read_list(value, to);
  } else if constexpr (std::same_as<T, Json>) {
    // The value must be of the kind of its default.
    if (to.is_array() ? !value.is_list() : !value.is_object()) JsonValue::fail(to.is_array() ? "a list" : "an object");
    to = parse_untrusted(value.text());
  } else {
    static_assert(std::same_as<T, SharedJson>, "a type without a form in JSON");
    if (!value.is_object()) JsonValue::fail("an object");
    if (value.pool())
      to = value.pool()->get(value.text());
    else
      to = parse_untrusted(value.text());
  }
}

// A value from text, as use_text().
template <typename T>
T read_text(std::string_view text, JsonPool* pool = nullptr) {
  T value{};
  use_text(text, pool, [&](const JsonValue& json) { read_json(json, value); });
  return value;
}

template <typename T>
T read_value(const Json& json) {
  return read_text<T>(dump_line(json));
}

}  // namespace assay
