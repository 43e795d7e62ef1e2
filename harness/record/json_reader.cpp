// Tolerant reading of untrusted JSON.
#include "harness/record/json_reader.h"

#include "harness/core/error.h"

#include <limits>
#include <utility>

namespace assay {

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
