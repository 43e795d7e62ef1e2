#include "harness/json/scanner.h"

#include "harness/core/error.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>

namespace assay {

namespace {

constexpr int max_scan_depth = 64;

[[noreturn]] void not_json() { throw Error("not JSON"); }

[[noreturn]] void wrong(const char* wanted) { throw Mismatch{"", std::string("not ") + wanted}; }

// Bytes of one code point beyond ASCII; 0 when it is malformed (RFC 3629).
std::size_t utf8_length(const char* at, const char* end) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(at[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || static_cast<std::size_t>(end - at) < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(1);
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
      (first == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

void append_utf8(std::string& to, unsigned code) {
  const auto put = [&](unsigned byte) { to.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

char JsonScanner::peek() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  return at_ < end_ ? *at_ : '\0';
}

void JsonScanner::literal(std::string_view word) {
  if (static_cast<std::size_t>(end_ - at_) < word.size() || std::memcmp(at_, word.data(), word.size()) != 0) not_json();
  at_ += word.size();
}

bool JsonScanner::null() {
  if (peek() != 'n') return false;
  literal("null");
  return true;
}

bool JsonScanner::boolean(const char* wanted) {
  const char first = peek();
  if (first != 't' && first != 'f') wrong(wanted);
  literal(first == 't' ? "true" : "false");
  return first == 't';
}

std::string_view JsonScanner::string(const char* wanted) {
  if (peek() != '"') wrong(wanted);
  return quoted(text_);
}

std::string_view JsonScanner::member_name() {
  if (peek() != '"') not_json();
  const std::string_view name = quoted(names_[depth_]);
  if (peek() != ':') not_json();
  ++at_;
  return name;
}

unsigned JsonScanner::hex4() {
  if (end_ - at_ < 4) not_json();
  unsigned code = 0;
  const auto [end, error] = std::from_chars(at_, at_ + 4, code, 16);
  if (error != std::errc() || end != at_ + 4) not_json();
  at_ += 4;
  return code;
}

void JsonScanner::escape(std::string& to) {
  if (at_ == end_) not_json();
  switch (*at_++) {
    case '"': to += '"'; return;
    case '\\': to += '\\'; return;
    case '/': to += '/'; return;
    case 'b': to += '\b'; return;
    case 'f': to += '\f'; return;
    case 'n': to += '\n'; return;
    case 'r': to += '\r'; return;
    case 't': to += '\t'; return;
    case 'u': break;
    default: not_json();
  }
  unsigned code = hex4();
  if (code >= 0xDC00 && code <= 0xDFFF) not_json();
  if (code >= 0xD800 && code <= 0xDBFF) {
    literal("\\u");
    const unsigned low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) not_json();
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(to, code);
}

std::string_view JsonScanner::quoted(std::string& unescaped) {
  const char* from = ++at_;
  bool plain = true;
  for (;;) {
    if (at_ == end_) not_json();
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '"') break;
    if (c < 0x20) not_json();
    if (c == '\\') {
      if (plain) unescaped.clear();
      plain = false;
      unescaped.append(from, at_);
      ++at_;
      escape(unescaped);
      from = at_;
    } else if (c < 0x80) {
      ++at_;
    } else {
      const std::size_t length = utf8_length(at_, end_);
      if (length == 0) not_json();
      at_ += length;
    }
  }
  const std::string_view rest(from, static_cast<std::size_t>(at_++ - from));
  if (plain) return rest;
  unescaped += rest;
  return unescaped;
}

JsonScanner::Number JsonScanner::number(const char* wanted) {
  const char first = peek();
  if (first != '-' && !is_digit(first)) wrong(wanted);
  const char* from = at_;
  Number number;
  number.negative = first == '-';
  at_ += number.negative;
  const char* digits = at_;
  const auto run = [&] {
    if (at_ == end_ || !is_digit(*at_)) not_json();
    while (at_ < end_ && is_digit(*at_)) ++at_;
  };
  run();
  if (*digits == '0' && at_ - digits > 1) not_json();
  number.integer = true;
  if (at_ < end_ && *at_ == '.') {
    number.integer = false;
    ++at_;
    run();
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    number.integer = false;
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    run();
  }
  if (number.integer) {
    const auto [end, error] = std::from_chars(digits, at_, number.magnitude);
    constexpr auto max_negative = std::uint64_t{1} << 63;
    number.integer = error == std::errc() && !(number.negative && number.magnitude > max_negative);
    if (number.integer) {
      number.real = static_cast<double>(number.magnitude);
      if (number.negative) number.real = -number.real;
      return number;
    }
  }
  const auto [end, error] = std::from_chars(from, at_, number.real);
  if (error == std::errc::result_out_of_range) number.real = std::strtod(std::string(from, at_).c_str(), nullptr);
  if (!std::isfinite(number.real)) not_json();
  return number;
}

void JsonScanner::enter(char bracket, const char* wanted) {
  if (peek() != bracket) wrong(wanted);
  if (++depth_ > max_scan_depth) throw Error("nested deeper than 64");
  ++at_;
}

bool JsonScanner::leave(char bracket) {
  if (peek() != bracket) return false;
  ++at_;
  --depth_;
  return true;
}

bool JsonScanner::more(char bracket) {
  if (leave(bracket)) return false;
  if (peek() != ',') not_json();
  ++at_;
  return true;
}

std::string_view JsonScanner::skip() {
  const char first = peek();
  const char* from = at_;
  switch (first) {
    case '{': members([this](std::string_view) { skip(); }); break;
    case '[': elements("a list", [this] { skip(); }); break;
    case '"': string(); break;
    case 't':
    case 'f': boolean(); break;
    case 'n': literal("null"); break;
    default:
      if (first != '-' && !is_digit(first)) not_json();
      number();
  }
  return {from, static_cast<std::size_t>(at_ - from)};
}

void JsonScanner::finish() {
  (void)peek();
  if (at_ != end_) not_json();
}

}  // namespace assay
