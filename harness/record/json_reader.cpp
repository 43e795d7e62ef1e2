// Tolerant reading of untrusted JSON.
#include "harness/record/json_reader.h"

#include "harness/core/error.h"

#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t max_depth = 64;

// Builds the document from the parser's events: nlohmann's builder compares each name with all before it, so an object
// of a hundred thousand members would take minutes. Of a repeated name the last value counts.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

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
    stack_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  struct Level {
    Json value;
    std::string key;                                      // of the member being read
    std::unordered_map<std::string, std::size_t> places;  // of the members
  };

  // The parser does not recurse, but printing, copying and destroying the document does.
  bool open(Json container) {
    if (stack_.size() >= max_depth) throw Error(fmt::format("nested deeper than {}", max_depth));
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

}  // namespace

Json parse_untrusted(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) throw Error("not JSON");
  return builder.take();
}

std::string dump_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

JsonReader::JsonReader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {
  if (!json.is_object()) throw Error(path_.empty() ? "not an object" : path_ + ": not an object");
}

const Json* JsonReader::find(std::string_view name) const {
  const auto it = json_->find(name);
  return it == json_->end() || it->is_null() ? nullptr : &*it;
}

std::string JsonReader::place(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void JsonReader::wrong(std::string_view name, std::string_view expected) const {
  throw Error(fmt::format("{}: not {}", place(name), expected));
}

std::vector<std::string> JsonReader::names() const {
  std::vector<std::string> names;
  for (const auto& item : json_->items()) names.push_back(item.key());
  return names;
}

std::string JsonReader::text(std::string_view name, std::string_view otherwise) const {
  const Json* member = find(name);
  if (!member) return std::string(otherwise);
  if (!member->is_string()) wrong(name, "a string");
  return member->get<std::string>();
}

bool JsonReader::flag(std::string_view name, bool otherwise) const {
  const Json* member = find(name);
  if (!member) return otherwise;
  if (!member->is_boolean()) wrong(name, "true or false");
  return member->get<bool>();
}

std::int64_t JsonReader::integer(std::string_view name, std::int64_t otherwise) const {
  const Json* member = find(name);
  if (!member) return otherwise;
  if (!member->is_number_integer()) wrong(name, "an integer");
  if (member->is_number_unsigned() &&
      member->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    wrong(name, "an integer of 64 bits");
  return member->get<std::int64_t>();
}

std::uint64_t JsonReader::unsigned_integer(std::string_view name, std::uint64_t otherwise) const {
  const Json* member = find(name);
  if (!member) return otherwise;
  // A number set in code may be signed although it is not negative.
  if (!member->is_number_integer() || (!member->is_number_unsigned() && member->get<std::int64_t>() < 0))
    wrong(name, "an integer from 0 on");
  return member->get<std::uint64_t>();
}

int JsonReader::small(std::string_view name, int otherwise) const {
  const std::int64_t value = integer(name, otherwise);
  if (value < 0 || value > std::numeric_limits<int>::max()) wrong(name, "an integer of 31 bits");
  return static_cast<int>(value);
}

std::optional<double> JsonReader::maybe_real(std::string_view name) const {
  const Json* member = find(name);
  if (!member) return std::nullopt;
  if (!member->is_number()) wrong(name, "a number");
  return member->get<double>();
}

std::vector<std::optional<double>> JsonReader::maybe_reals(std::string_view name) const {
  std::vector<std::optional<double>> values;
  const Json* member = find(name);
  if (!member) return values;
  if (!member->is_array()) wrong(name, "a list of numbers");
  values.reserve(member->size());
  for (const Json& value : *member) {
    if (value.is_null())
      values.emplace_back();
    else if (value.is_number())
      values.emplace_back(value.get<double>());
    else
      wrong(name, "a list of numbers");
  }
  return values;
}

std::vector<double> JsonReader::reals(std::string_view name) const {
  std::vector<double> values;
  for (const auto& value : maybe_reals(name))
    values.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  return values;
}

std::vector<std::string> JsonReader::texts(std::string_view name) const {
  std::vector<std::string> values;
  const Json* member = find(name);
  if (!member) return values;
  if (!member->is_array()) wrong(name, "a list of strings");
  for (const Json& value : *member) {
    if (!value.is_string()) wrong(name, "a list of strings");
    values.push_back(value.get<std::string>());
  }
  return values;
}

Json JsonReader::object(std::string_view name) const {
  const Json* member = find(name);
  if (!member) return Json::object();
  if (!member->is_object()) wrong(name, "an object");
  return *member;
}

JsonReader JsonReader::child(std::string_view name) const {
  static const Json empty = Json::object();
  const Json* member = find(name);
  return {member ? *member : empty, place(name)};
}

std::vector<JsonReader> JsonReader::children(std::string_view name) const {
  std::vector<JsonReader> readers;
  const Json* member = find(name);
  if (!member) return readers;
  if (!member->is_array()) wrong(name, "a list");
  for (std::size_t i = 0; i < member->size(); ++i)
    readers.emplace_back((*member)[i], fmt::format("{}[{}]", place(name), i));
  return readers;
}

}  // namespace assay
