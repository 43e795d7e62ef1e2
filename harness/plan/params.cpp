// Parameters of a case: values, their canonical text and the case's key.
#include "harness/plan/params.h"

#include "harness/core/error.h"
#include "harness/json/value.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace assay {

namespace {

std::string_view type_name(const ParamValue& value) {
  switch (value.index()) {
    case 0: return "a flag";
    case 1: return "an integer";
    case 2: return "a real number";
    default: return "text";
  }
}

}  // namespace

std::string to_string(const ParamValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>)
          return v;
        else
          return fmt::format("{}", v);
      },
      value);
}

Json to_json(const ParamValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

void Params::set(std::string name, ParamValue value) {
  for (auto& item : items_) {
    if (item.first == name) {
      item.second = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

const ParamValue* Params::find(std::string_view name) const {
  for (const auto& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

bool Params::has(std::string_view name) const { return find(name) != nullptr; }

const ParamValue& Params::at(std::string_view name) const {
  if (const ParamValue* value = find(name)) return *value;
  throw Error(fmt::format("the case has no parameter \"{}\"", name));
}

std::string Params::word(std::string_view name) const {
  const ParamValue* value = find(name);
  return value ? to_string(*value) : std::string();
}

std::optional<std::int64_t> Params::number(std::string_view name) const {
  const ParamValue* value = find(name);
  const auto* number = value ? std::get_if<std::int64_t>(value) : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

namespace {

template <typename T>
const T& get(const ParamValue& value, std::string_view name, std::string_view wanted) {
  if (const T* held = std::get_if<T>(&value)) return *held;
  throw Error(fmt::format("parameter \"{}\" is {}, not {}", name, type_name(value), wanted));
}

}  // namespace

std::int64_t Params::integer(std::string_view name) const { return get<std::int64_t>(at(name), name, "an integer"); }

double Params::real(std::string_view name) const {
  const ParamValue& value = at(name);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return get<double>(value, name, "a real number");
}

bool Params::flag(std::string_view name) const { return get<bool>(at(name), name, "a flag"); }

const std::string& Params::text(std::string_view name) const { return get<std::string>(at(name), name, "text"); }

std::size_t Params::index_of(std::string_view name, std::span<const std::string_view> words) const {
  const std::string& word = text(name);
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) throw Error(fmt::format("\"{}\" is no value of \"{}\"", word, name));
  return static_cast<std::size_t>(found - words.begin());
}

std::string Params::key(std::string_view family) const {
  std::string key(family);
  for (const auto& [name, value] : items_) key += fmt::format("/{}={}", name, to_string(value));
  return key;
}

Json Params::to_json() const {
  Json object = Json::object();
  for (const auto& [name, value] : items_) object[name] = assay::to_json(value);
  return object;
}

void read(const JsonValue& value, Params& to) {
  value.members([&](std::string_view name, const JsonValue& member) {
    const auto set = [&](ParamValue one) { to.set(std::string(name), std::move(one)); };
    if (member.is_string()) return set(std::string(member.string()));
    if (member.is_boolean()) return set(member.boolean());
    if (member.is_integer()) return set(member.integer<std::int64_t>());
    set(member.number());
  });
}

bool ParamSpec::has(DeviceKind device) const {
  return devices.empty() || std::ranges::find(devices, device) != devices.end();
}

bool ParamSpec::has(const ParamValue& value, DeviceKind device) const {
  const auto place = only_on.find(to_string(value));
  return place == only_on.end() || place->second == device;
}

const std::vector<ParamValue>& ParamSpec::defaults_on(DeviceKind device) const {
  return device == DeviceKind::cuda && !cuda_defaults.empty() ? cuda_defaults : defaults;
}

ParamSpec& ParamSpec::runs(std::initializer_list<ParamValue> values) {
  defaults = values;
  return *this;
}

ParamSpec& ParamSpec::runs(const std::vector<std::string>& words) {
  defaults.assign(words.begin(), words.end());
  return *this;
}

ParamSpec& ParamSpec::runs_on_gpu(std::initializer_list<ParamValue> values) {
  cuda_defaults = values;
  return *this;
}

ParamSpec& ParamSpec::runs_on_gpu(const std::vector<std::string>& words) {
  cuda_defaults.assign(words.begin(), words.end());
  return *this;
}

ParamSpec& ParamSpec::at_least(double limit) {
  minimum = limit;
  return *this;
}

ParamSpec& ParamSpec::range(double lowest, double highest) {
  minimum = lowest;
  maximum = highest;
  return *this;
}

ParamSpec& ParamSpec::only(DeviceKind device) {
  devices = {device};
  return *this;
}

ParamSpec& ParamSpec::only(DeviceKind device, const std::vector<std::string>& values) {
  for (const std::string& value : values) only_on[value] = device;
  return *this;
}

ParamSpec& ParamSpec::sweeps(std::vector<std::int64_t> values) {
  sweep = std::move(values);
  return *this;
}

ParamSpec& ParamSpec::omitted_by_default() {
  omit_default = true;
  return *this;
}

ParamSpec& ParamSpec::read_by_shell(Shell as) {
  shell = as;
  return *this;
}

ParamSpec& ParamSpec::doc(std::string line) {
  help = std::move(line);
  return *this;
}

namespace axis {

ParamSpec integer(std::string name, std::int64_t value) {
  return {.name = std::move(name), .type = ParamType::integer, .defaults = {value}};
}

ParamSpec bytes(std::string name, std::initializer_list<std::int64_t> values) {
  return {.name = std::move(name), .type = ParamType::bytes, .defaults = {values.begin(), values.end()}};
}

ParamSpec seconds(std::string name, double value) {
  return {.name = std::move(name), .type = ParamType::seconds, .defaults = {value}};
}

ParamSpec flag(std::string name, bool value) {
  return {.name = std::move(name), .type = ParamType::flag, .defaults = {value}};
}

ParamSpec text(std::string name, std::string value) {
  return {.name = std::move(name), .type = ParamType::text, .defaults = {std::move(value)}};
}

ParamSpec choice(std::string name, std::vector<std::string> words) {
  ParamSpec spec{.name = std::move(name), .type = ParamType::choice, .allowed = std::move(words)};
  spec.runs(spec.allowed);
  return spec;
}

ParamSpec count(std::string name, std::vector<std::string> words) {
  ParamSpec spec = choice(std::move(name), std::move(words));
  spec.type = ParamType::count;
  return spec;
}

ParamSpec gpus() {
  return choice<Gpus>("gpus")
      .runs({"together"})
      .runs_on_gpu({"each"})
      .omitted_by_default()
      .doc("with several ranks: one GPU (on a CPU: one rank) at a time, or all at once");
}

}  // namespace axis

std::optional<Gpus> gpus_of(const Params& params) {
  if (!params.has("gpus")) return std::nullopt;
  return params.choice<Gpus>("gpus");
}

}  // namespace assay
