#include "harness/json/json.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/masked.h"
#include "harness/json/shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t max_depth = 64;
constexpr std::uintmax_t max_file_bytes = std::uintmax_t{64} << 20;
constexpr std::size_t max_lines = 50;

// `name` as a token of a JSON pointer: ~ and / escaped.
std::string token(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

// LINE:COLUMN of byte `position`, 1-based as the parser counts.
std::string place(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position ? position - 1 : 0, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return fmt::format("{}:{}", line, column);
}

// Builds the document from parser events: nlohmann's builder compares each name with all before it, so an object of a
// hundred thousand members would take minutes. Depth is limited to protect code that walks the document.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Json release() { return std::move(root_); }

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return put(Json(value)); }
  bool string(string_t& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool key(string_t& name) override {
    if (stack_.back().places.contains(name)) repeated(name);
    stack_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 protected:
  virtual void too_deep() const { throw Error(fmt::format("nested deeper than {}", max_depth)); }
  virtual void repeated(const std::string& /*name*/) const {}  // its last value counts

  // Where the container that is being read is, as a JSON pointer.
  std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < stack_.size(); ++i) {
      const Level& level = stack_[i];
      out += '/';
      out += level.value.is_array() ? std::to_string(level.value.size()) : token(level.key);
    }
    return one_line(out);
  }

 private:
  struct Level {
    Json value;
    std::string key;                                      // of the member being read
    std::unordered_map<std::string, std::size_t> places;  // of the members
  };

  bool open(Json container) {
    if (stack_.size() >= max_depth) too_deep();
    stack_.push_back({std::move(container), {}, {}});
    return true;
  }

  bool close() {
    Json value = std::move(stack_.back().value);
    stack_.pop_back();
    return put(std::move(value));
  }

  bool put(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = stack_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
      return true;
    }
    auto& members = level.value.get_ref<Json::object_t&>();
    const auto [place, fresh] = level.places.try_emplace(level.key, members.size());
    if (fresh)
      members.emplace_back(std::move(level.key), std::move(value));
    else
      std::next(members.begin(), static_cast<std::ptrdiff_t>(place->second))->second = std::move(value);
    return true;
  }

  Json root_;
  std::vector<Level> stack_;
};

// Rejects what the parser would accept, and names the place.
class StrictBuilder final : public Builder {
 public:
  StrictBuilder(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...": only the last part.
    std::string what = error.what();
    for (const std::string_view marker : {std::string_view("syntax error "), std::string_view("number overflow ")}) {
      const std::size_t at = what.find(marker);
      if (at == std::string::npos) continue;
      what = what.substr(at);
      break;
    }
    throw UsageError(fmt::format("{}:{}: {}", name_, place(text_, position), one_line(what)));
  }

 private:
  void too_deep() const override {
    throw UsageError(fmt::format("{}: {}: nested deeper than {} levels", name_, one_line(pointer()), max_depth));
  }
  void repeated(const std::string& name) const override {
    throw UsageError(
        fmt::format("{}: {}: key {} appears twice", name_, one_line(pointer() + "/" + token(name)), in_quotes(name)));
  }

  std::string_view text_;
  const std::string& name_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw UsageError(fmt::format("{}: empty", name));
  StrictBuilder builder(text, name);
  Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, true, true);
  return builder.release();
}

Json parse_untrusted(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) throw Error("not JSON");
  return builder.release();
}

const SharedJson& JsonPool::get(std::string_view text) {
  const auto known = values_.find(text);
  if (known != values_.end()) return known->second;
  SharedJson value;
  value = parse_untrusted(text);
  return values_.emplace(text, std::move(value)).first->second;
}

std::string dump_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string dump_document(const Json& json, int indent) {
  return masked(json).dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json read_json(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const std::string name = path.string();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw UsageError(fmt::format("{}: no such file", name));
  if (error) throw UsageError(fmt::format("{}: {}", name, error.message()));
  if (fs::is_directory(status)) throw UsageError(fmt::format("{}: is a folder, not a file", name));
  std::string text;
  try {
    text = read_whole(path, max_file_bytes, Pipes::read);
  } catch (const Error& caught) {
    throw UsageError(caught.what());
  }
  return parse_json(text, name);
}

void Problems::add(const std::string& pointer, const std::string& what) {
  ++count_;
  if (lines_.size() >= max_lines) return;
  lines_.push_back(pointer.empty() ? fmt::format("{}: {}", source_, what)
                                   : fmt::format("{}: {}: {}", source_, one_line(pointer), what));
}

void Problems::raise() const {
  if (empty()) return;
  std::string all = joined(lines_, "\n");
  if (count_ > lines_.size()) all += fmt::format("\n{}: and {} more errors", source_, count_ - lines_.size());
  throw UsageError(all);
}

std::string_view kind_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return "an integer";
    case Json::value_t::number_float: return "a fractional number";
    default: return "of an unknown kind";
  }
}

bool Cursor::object() const {
  if (json_->is_object()) return true;
  error(fmt::format("must be an object, is {}", kind_of(*json_)));
  return false;
}

void Cursor::only(std::span<const std::string> names) const {
  if (!json_->is_object()) return;
  for (const auto& [name, value] : json_->items()) {
    bool known = false;
    for (const std::string& candidate : names) known = known || candidate == name;
    if (!known)
      problems_->add(pointer_ + "/" + token(name),
                     fmt::format("unknown key {}{}", in_quotes(name), suggestion(name, names)));
  }
}

std::optional<Cursor> Cursor::find(std::string_view name) const {
  if (!json_->is_object()) return std::nullopt;
  const auto found = json_->find(std::string(name));
  if (found == json_->end()) return std::nullopt;
  return Cursor(*found, *problems_, pointer_ + "/" + token(name));
}

std::optional<Cursor> Cursor::need(std::string_view name) const {
  auto found = find(name);
  if (!found && json_->is_object()) error(fmt::format("\"{}\" is missing", name));
  return found;
}

std::string Cursor::text_of(std::string_view name) const {
  const auto found = find(name);
  return found ? found->text().value_or("") : std::string();
}

std::string Cursor::need_text(std::string_view name) const {
  need(name);
  return text_of(name);
}

std::vector<Cursor> Cursor::elements() const {
  std::vector<Cursor> all;
  if (!json_->is_array()) {
    error(fmt::format("must be a list, is {}", kind_of(*json_)));
    return all;
  }
  all.reserve(json_->size());
  for (std::size_t i = 0; i < json_->size(); ++i)
    all.emplace_back((*json_)[i], *problems_, fmt::format("{}/{}", pointer_, i));
  return all;
}

std::vector<std::pair<std::string, Cursor>> Cursor::members() const {
  std::vector<std::pair<std::string, Cursor>> all;
  if (!object()) return all;
  for (const auto& [name, value] : json_->items())
    all.emplace_back(name, Cursor(value, *problems_, pointer_ + "/" + token(name)));
  return all;
}

std::optional<std::string> Cursor::text() const {
  if (json_->is_string()) return json_->get<std::string>();
  error(fmt::format("must be text, is {}", kind_of(*json_)));
  return std::nullopt;
}

std::optional<bool> Cursor::flag() const {
  if (json_->is_boolean()) return json_->get<bool>();
  error(fmt::format("must be true or false, is {}", kind_of(*json_)));
  return std::nullopt;
}

std::optional<std::int64_t> Cursor::integer(std::int64_t minimum, std::int64_t maximum) const {
  if (!json_->is_number_integer()) {
    error(fmt::format("must be an integer, is {}", kind_of(*json_)));
    return std::nullopt;
  }
  const bool too_large =
      json_->is_number_unsigned() && json_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (too_large || json_->get<std::int64_t>() > maximum) {
    error(fmt::format("{} is too large: at most {}", json_->dump(), maximum));
    return std::nullopt;
  }
  if (json_->get<std::int64_t>() < minimum) {
    error(fmt::format("{} is too small: at least {}", json_->dump(), minimum));
    return std::nullopt;
  }
  return json_->get<std::int64_t>();
}

std::optional<double> Cursor::number(double minimum, double maximum) const {
  if (!json_->is_number()) {
    error(fmt::format("must be a number, is {}", kind_of(*json_)));
    return std::nullopt;
  }
  const double value = json_->get<double>();
  // Written so that NaN is rejected.
  if (value >= minimum && value <= maximum) return value;
  error(value < minimum ? fmt::format("{} is too small: at least {}", json_->dump(), minimum)
                        : fmt::format("{} is too large: at most {}", json_->dump(), maximum));
  return std::nullopt;
}

std::optional<double> Cursor::quantity(double (*parse)(std::string_view), double minimum, double maximum) const {
  if (!json_->is_string()) return number(minimum, maximum);
  double value = 0;
  try {
    value = parse(json_->get_ref<const std::string&>());
  } catch (const UsageError& problem) {
    error(problem.what());
    return std::nullopt;
  }
  if (value >= minimum && value <= maximum) return value;
  error(value < minimum
            ? fmt::format("{} is too small: at least {}", in_quotes(json_->get_ref<const std::string&>()), minimum)
            : fmt::format("{} is too large: at most {}", in_quotes(json_->get_ref<const std::string&>()), maximum));
  return std::nullopt;
}

std::optional<std::string> Cursor::choice(std::span<const std::string> allowed) const {
  const auto word = text();
  if (!word) return std::nullopt;
  for (const std::string& candidate : allowed)
    if (candidate == *word) return word;
  error(fmt::format("{} is not a valid value{}", in_quotes(*word), suggestion(*word, allowed)));
  return std::nullopt;
}

bool Cursor::schema(int schema) const {
  const auto found = need("schema");
  if (!found) return false;
  const auto number = found->integer();
  if (!number) return false;
  if (*number == schema) return true;
  found->error(fmt::format("schema {} is not known: this build reads schema {}", *number, schema));
  return false;
}

std::string scalar_text(const Json& json) { return json.is_string() ? json.get<std::string>() : dump_line(json); }

const Json& member(const Json& json, std::string_view path) {
  static const Json none;
  const Json* at = &json;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    if (!at->is_object()) return none;
    const auto found = at->find(name);
    if (found == at->end()) return none;
    at = &*found;
  }
  return *at;
}

std::string text_member(const Json& json, std::string_view path) {
  const Json& value = member(json, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<double> number_member(const Json& json, std::string_view path) {
  const Json& value = member(json, path);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

}  // namespace assay
