// Strict reading of JSON files: standard JSON plus comments. All errors in a file are reported together, each with its
// location and the nearest valid name.
#pragma once

#include "harness/json/fwd.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Parses strict JSON with // and /* */ comments. Throws UsageError "NAME:LINE:COLUMN: ..." for syntax errors, anything
// after the value, duplicate keys, nesting beyond 64 levels, numbers outside the range of a double, and invalid UTF-8.
// `name` is what messages call the text: a path or a flag.
Json parse_json(std::string_view text, const std::string& name);

// Parses untrusted text (a record, a message, a run.json): the last of duplicate keys counts, and nesting is limited,
// so that no text can exhaust the stack. Throws Error: "not JSON", "nested deeper than 64".
Json parse_untrusted(std::string_view text);

// One line of JSON; bytes that are not UTF-8 are replaced.
std::string dump_line(const Json& json);
// The text for a file: indented, ending with a line end; bytes that are not UTF-8 are replaced.
std::string dump_document(const Json& json, int indent = 1);

// parse_json for a file of at most 64 MiB. Also throws, with the reason, if it is missing, a folder, unreadable or
// empty.
Json read_json(const std::filesystem::path& path);

// Errors in one file or flag, collected so that all are reported together.
class Problems {
 public:
  explicit Problems(std::string source) : source_(std::move(source)) {}

  // `pointer` is a JSON pointer (RFC 6901), empty for the whole file.
  void add(const std::string& pointer, const std::string& what);
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  const std::string& source() const { return source_; }
  // Throws UsageError if there are problems: one line each, "SOURCE: POINTER: WHAT", at most 50.
  void raise() const;

 private:
  std::string source_;
  std::size_t count_ = 0;
  std::vector<std::string> lines_;
};

// A value in a file, with its location. A failed read adds a problem and returns nothing.
// The JSON and the problems must outlive the cursor.
class Cursor {
 public:
  Cursor(const Json& json, Problems& problems, std::string pointer = {})
      : json_(&json), problems_(&problems), pointer_(std::move(pointer)) {}

  const Json& json() const { return *json_; }
  const std::string& pointer() const { return pointer_; }
  Problems& problems() const { return *problems_; }
  void error(const std::string& what) const { problems_->add(pointer_, what); }

  // Whether this is an object; adds a problem if not.
  bool object() const;
  // Adds a problem for each member whose name is not among these, suggesting the nearest.
  void only(std::span<const std::string> names) const;
  void only(std::initializer_list<std::string> names) const { only(std::span(names.begin(), names.size())); }
  // A member, if the object has it.
  std::optional<Cursor> find(std::string_view name) const;
  // A required member.
  std::optional<Cursor> need(std::string_view name) const;
  // Elements of an array, members of an object; none, and a problem, if it is not one.
  std::vector<Cursor> elements() const;
  std::vector<std::pair<std::string, Cursor>> members() const;

  std::optional<std::string> text() const;
  // The text of a member, or of a required one; empty if there is none.
  std::string text_of(std::string_view name) const;
  std::string need_text(std::string_view name) const;
  std::optional<bool> flag() const;
  std::optional<std::int64_t> integer(std::int64_t minimum = INT64_MIN, std::int64_t maximum = INT64_MAX) const;
  // A number from `minimum` to `maximum`.
  std::optional<double> number(double minimum, double maximum) const;
  // A number, or text with a unit that `parse` reads ("64MiB", "500ms", "3%"; see units.h).
  std::optional<double> quantity(double (*parse)(std::string_view), double minimum, double maximum) const;
  // One of these words.
  std::optional<std::string> choice(std::span<const std::string> allowed) const;
  // Whether the required member "schema" equals `schema`.
  bool schema(int schema) const;

 private:
  const Json* json_;
  Problems* problems_;
  std::string pointer_;
};

// Reads a file's JSON strictly: an object with "schema", equal to `schema`, and no other members than `names`. What
// read(root) finds wrong is thrown with the rest; nothing of another schema is read.
template <typename Read>
auto read_strictly(const Json& json, const std::string& file, int schema, std::initializer_list<std::string> names,
                   const Read& read) {
  Problems problems(file);
  const Cursor root(json, problems);
  if (!root.object() || !root.schema(schema)) problems.raise();
  root.only(names);
  auto value = read(root);
  problems.raise();
  return value;
}
template <typename Read>
auto read_strictly(const std::filesystem::path& file, int schema, std::initializer_list<std::string> names,
                   const Read& read) {
  return read_strictly(read_json(file), file.string(), schema, names, read);
}

// "an object", "text", ...: what a value is, for messages.
std::string_view kind_of(const Json& json);

// Null if there is no value, or the text is empty.
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
inline Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// A text as it is, any other value as a line of JSON.
std::string scalar_text(const Json& json);

// Members of objects in an untrusted document, by path ("/cpu/name"): null, empty or absent if there is none of that
// type.
const Json& member(const Json& json, std::string_view path);
std::string text_member(const Json& json, std::string_view path);
std::optional<double> number_member(const Json& json, std::string_view path);

}  // namespace assay
