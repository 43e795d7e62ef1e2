#include "reports/render/escape.h"

#include "harness/core/plain_text.h"
#include "harness/core/secrets.h"

#include <cctype>
#include <optional>

namespace assay::report {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

int width_of(char32_t c) {
  if (c >= 0x300 && c <= 0x36F) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                    (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                    (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
  return wide ? 2 : 1;
}

// Whether services that show Markdown link what goes on here, or tell somebody, unless a zero-width space follows this
// character: "@user", "#123", "!123", "$1", "~label", "GH-123", "https://", "www.".
bool may_link(std::string_view text, std::size_t at) {
  const auto is = [&](std::size_t i, std::string_view set) { return i < text.size() && set.find(text[i]) != set.npos; };
  const bool word = at + 1 < text.size() && std::isalnum(static_cast<unsigned char>(text[at + 1]));
  if (is(at, "@#!$~")) return word;
  if (is(at, ":")) return text.substr(at + 1).starts_with("//");
  if (at < 2) return false;
  if (is(at, "-")) return is(at - 2, "Gg") && is(at - 1, "Hh") && is(at + 1, "0123456789");
  return is(at, "Ww") && is(at - 1, "Ww") && is(at - 2, "Ww") && is(at + 1, ".");
}

}  // namespace

std::string printable(std::string_view given) {
  const std::string masked = mask_secrets(given);
  std::string_view text = masked;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point) {
      out += replacement;
      text.remove_prefix(1);
      continue;
    }
    if (point->code == '\t' || point->code == '\n' || point->code == '\r')
      out += ' ';
    else if (is_harmful(point->code))
      out += replacement;
    else
      out += text.substr(0, point->length);
    text.remove_prefix(point->length);
  }
  return out;
}

std::string markdown_escape(std::string_view text) {
  std::string out;
  const std::string clean = printable(text);
  for (std::size_t i = 0; i < clean.size(); ++i) {
    switch (const char c = clean[i]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default:
        if (std::string_view("|*_`[]\\~#!$").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    if (may_link(clean, i)) out += "&#8203;";
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
    const auto point = first_code_point(text);
    columns += point ? width_of(point->code) : 1;
    text.remove_prefix(point ? point->length : 1);
  }
  return columns;
}

std::size_t fitting(std::string_view text, int columns) {
  std::size_t bytes = 0;
  int used = 0;
  while (bytes < text.size()) {
    const auto point = first_code_point(text.substr(bytes));
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
