// Reads JSON from its text, member by member, without building a tree: there may be hundreds of thousands of records.
// As strict as a parser (RFC 8259): syntax, UTF-8, nesting of at most 64.
#pragma once

#include "harness/json/shared.h"

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

// Values are read in order. Throws Error "not JSON" or "nested deeper than 64", and Mismatch.
class JsonScanner {
 public:
  struct Number {
    double real = 0;
    bool integer = false;  // written without fraction and exponent, and within 64 bits
    bool negative = false;
    std::uint64_t magnitude = 0;  // of an integer
  };

  explicit JsonScanner(std::string_view text, JsonPool* pool = nullptr)
      : at_(text.data()), end_(text.data() + text.size()), pool_(pool) {}

  // Where equal parts of the text are shared; may be null.
  JsonPool* pool() const { return pool_; }

  // The first character of the next value; 0 at the end.
  char peek();
  // If the value is null, reads it and returns true.
  bool null();
  // Each throws Mismatch "not `wanted`" if the value is of another type. The text is valid until the next call.
  std::string_view string(const char* wanted = "a string");
  bool boolean(const char* wanted = "true or false");
  Number number(const char* wanted = "a number");
  // An int is never negative.
  template <std::integral T>
  T integer() {
    const bool natural = std::same_as<T, std::uint64_t>;
    const Number read = number(natural ? "an integer from 0 on" : "an integer");
    const bool negative = read.negative && read.magnitude > 0;
    if (!read.integer || (natural && negative))
      throw Mismatch{"", natural ? "not an integer from 0 on" : "not an integer"};
    if (std::same_as<T, int> ? negative || !std::in_range<int>(read.magnitude)
                             : !natural && !negative && !std::in_range<std::int64_t>(read.magnitude))
      throw Mismatch{"", std::same_as<T, int> ? "not an integer of 31 bits" : "not an integer of 64 bits"};
    return static_cast<T>(negative ? 0 - read.magnitude : read.magnitude);
  }
  // `each(name)` must read the member's value, and `each()` the element.
  template <typename Each>
  void members(Each each) {
    enter('{', "an object");
    if (leave('}')) return;
    do {
      const std::string_view name = member_name();
      try {
        each(name);
      } catch (Mismatch& mismatch) {
        mismatch.inside(name);
        throw;
      }
    } while (more('}'));
  }
  template <typename Each>
  void elements(const char* wanted, Each each) {
    enter('[', wanted);
    if (leave(']')) return;
    do each();
    while (more(']'));
  }
  // Skips any value and returns its text.
  std::string_view skip();
  // Throws if anything but white space follows.
  void finish();

 private:
  void enter(char bracket, const char* wanted);
  bool leave(char bracket);
  bool more(char bracket);
  std::string_view member_name();
  std::string_view quoted(std::string& unescaped);
  void escape(std::string& to);
  unsigned hex4();
  void literal(std::string_view word);

  const char* at_;
  const char* end_;
  JsonPool* pool_;
  int depth_ = 0;
  std::string text_, names_[65];  // buffers for strings with escapes; a name outlives its value
};

}  // namespace assay
