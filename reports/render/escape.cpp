#include "reports/render/escape.h"

#include "harness/core/secrets.h"

#include <optional>

namespace assay::report {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Decoded {
  char32_t code;
  std::size_t length;
};

// One code point of well-formed UTF-8 (RFC 3629); absent for malformed bytes.
std::optional<Decoded> decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return Decoded{first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || text.size() < length) return std::nullopt;
  char32_t code = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < lowest[length] || code > 0x10FFFF || surrogate) return std::nullopt;
  return Decoded{code, length};
}

// Control characters, and marks that reorder or hide the text around them.
bool harmful(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

int width_of(char32_t c) {
  if (c >= 0x300 && c <= 0x36F) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                    (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

std::string printable(std::string_view given) {
  const std::string masked = mask_secrets(given);
  std::string_view text = masked;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto point = decode(text);
    if (!point) {
      out += replacement;
      text.remove_prefix(1);
      continue;
    }
    if (point->code == '\t' || point->code == '\n' || point->code == '\r')
      out += ' ';
    else if (harmful(point->code))
      out += replacement;
    else
      out += text.substr(0, point->length);
    text.remove_prefix(point->length);
  }
  return out;
}

std::string markdown_escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default:
        if (std::string_view("|*_`[]\\~#!$").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
  }
  return out;
}

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const auto point = decode(text);
    columns += point ? width_of(point->code) : 1;
    text.remove_prefix(point ? point->length : 1);
  }
  return columns;
}

std::size_t fitting(std::string_view text, int columns) {
  std::size_t bytes = 0;
  int used = 0;
  while (bytes < text.size()) {
    const auto point = decode(text.substr(bytes));
    used += point ? width_of(point->code) : 1;
    if (used > columns && bytes > 0) break;
    bytes += point ? point->length : 1;
  }
  return bytes;
}

std::string shorten(std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  return std::string(text.substr(0, columns > 1 ? fitting(text, columns - 1) : 0)) + "…";
}

}  // namespace assay::report
