#include "reports/exchange/recognise.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"
#include "reports/exchange/nccl_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace assay::report {

const char* const recognised_formats =
    "the JSON of Google Benchmark, pytest-benchmark, asv and hyperfine, what nvbandwidth and nccl-tests print, and "
    "lines "
    "\"name value unit better\"";

namespace {

// The format of a document; empty if it is none that is known.
std::string_view format_of(const Json& json) {
  const auto list = [&](const char* pointer) { return member(json, pointer).is_array(); };
  if (list("/benchmarks")) {
    const Json& all = member(json, "/benchmarks");
    const bool stats = !all.empty() && !member(all.front(), "/stats").is_null();
    return stats || !member(json, "/machine_info").is_null() ? "pytest-benchmark" : "gbench";
  }
  if (list("/results") && !member(json, "/results").empty() &&
      !text_member(member(json, "/results").front(), "/command").empty())
    return "hyperfine";
  if (member(json, "/results").is_object() && !text_member(json, "/commit_hash").empty()) return "asv";
  return member(json, "/nvbandwidth").is_object() ? "nvbandwidth" : "";
}

std::optional<Json> parsed(const std::string& text) {
  try {
    return parse_printed_json(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// From the first line that begins with a brace to the last that ends with one; empty if there is none.
std::string braces_of(const std::string& text) {
  std::size_t begin = text.starts_with('{') ? 0 : text.find("\n{");
  const std::size_t end = text.rfind('}');
  if (begin == text.npos || end == text.npos || end < begin) return {};
  if (text[begin] == '\n') ++begin;
  return text.substr(begin, end + 1 - begin);
}

ForeignInput input_of(const std::string& text, const std::string& file) {
  const auto more = [text, given = false](std::string& to) mutable {
    if (std::exchange(given, true)) return false;
    to += text;
    return true;
  };
  return {.file = file, .more = more};
}

std::optional<RecognisedFile> read(std::string_view format, const std::string& text, const std::string& file) {
  const auto found = std::ranges::find(import_formats(), format, &ImportFormat::name);
  return RecognisedFile{found->name, found->read(input_of(text, file))};
}

bool has_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, value, unit, better, more;
    if (words >> name >> value >> unit >> better && !(words >> more) && from_word<Better>(better)) return true;
  }
  return false;
}

std::optional<RecognisedFile> read_document(const std::string& text, const std::string& file) {
  const std::string document = braces_of(text);
  if (document.empty()) return std::nullopt;
  if (const auto json = parsed(document)) {
    const std::string_view format = format_of(*json);
    return format.empty() ? std::nullopt : read(format, document, file);
  }
  if (document.find("\"benchmarks\": [") == document.npos || document.find("\"context\"") == document.npos)
    return std::nullopt;
  const std::string closed = document + "\n]}";
  const auto begun = parsed(closed);
  if (!begun || format_of(*begun) != "gbench") return std::nullopt;
  auto found = read("gbench", closed, file);
  found->contents.remarks.emplace_back("its JSON ends early: what is whole was read");
  return found;
}

// The tables of nvbandwidth and nccl-tests.
std::optional<RecognisedFile> read_tables(const std::string& text, const std::string& file) {
  if (text.find("nvbandwidth Version:") != text.npos) return read("nvbandwidth", text, file);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find("busbw") != line.npos && NcclColumns::is_header(words_in(line)))
      return read("nccl-tests", text, file);
  return std::nullopt;
}

std::optional<RecognisedFile> read_tool_output(const std::string& text, const std::string& file) {
  auto found = read_document(text, file);
  return found ? std::move(found) : read_tables(text, file);
}

}  // namespace

std::optional<RecognisedFile> recognise(const std::string& text, const std::string& file) {
  if (auto found = read_tool_output(text, file)) return found;
  return has_line(text) ? read("lines", text, file) : std::nullopt;
}

std::optional<ab::ToolFigures> read_tool(const std::string& text, const std::string& file) {
  auto found = read_tool_output(text, file);
  if (!found) return std::nullopt;
  return ab::ToolFigures{std::string(found->format), std::move(found->contents)};
}

}  // namespace assay::report
