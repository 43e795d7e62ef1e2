// Values as bytes and back, the same on every machine of one byte order.
#pragma once

#include "harness/core/error.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay::history {

// Bytes that are not what was written.
class DataError : public Error {
 public:
  using Error::Error;
};

template <typename T>
concept PlainValue = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  template <PlainValue T>
  void operator()(const T& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }
  // Its size, and its bytes.
  void text(std::string_view text) {
    (*this)(static_cast<std::uint64_t>(text.size()));
    raw(text);
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  template <typename T>
  void list(const std::vector<T>& values, auto member) {
    (*this)(static_cast<std::uint32_t>(values.size()));
    for (const T& value : values) member(value);
  }
  template <typename T>
  void optional(const std::optional<T>& value, auto member) {
    (*this)(static_cast<std::uint8_t>(value.has_value()));
    if (value) member(*value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws DataError for bytes that end too early.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <PlainValue T>
  void operator()(T& value) {
    const std::string_view own = take(sizeof(T));
    if constexpr (std::is_same_v<T, bool>)
      value = own.front() != 0;
    else
      std::memcpy(&value, own.data(), sizeof(T));
  }
  template <PlainValue T>
  T get() {
    T value{};
    (*this)(value);
    return value;
  }
  std::string_view text() { return take(get<std::uint64_t>()); }
  template <typename T>
  void list(std::vector<T>& values, auto member) {
    const auto count = get<std::uint32_t>();
    if (count > bytes_.size()) ends();
    values.resize(count);
    for (T& value : values) member(value);
  }
  template <typename T>
  void optional(std::optional<T>& value, auto member) {
    if (get<std::uint8_t>() != 0) member(value.emplace());
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) ends();
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  [[noreturn]] static void ends() { throw DataError("bytes that end too early"); }
  std::string_view bytes_;
};

}  // namespace assay::history
