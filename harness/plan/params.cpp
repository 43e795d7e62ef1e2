// Parameters of a case: values, their canonical text and the case's key.
#include "harness/plan/params.h"

#include "harness/core/error.h"

#include <fmt/format.h>
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

bool Params::has(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
}

const ParamValue& Params::at(std::string_view name) const {
  for (const auto& item : items_)
    if (item.first == name) return item.second;
  throw Error(fmt::format("the case has no parameter \"{}\"", name));
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

bool ParamSpec::has(DeviceKind device) const {
  return devices.empty() || std::find(devices.begin(), devices.end(), device) != devices.end();
}

bool ParamSpec::has(const ParamValue& value, DeviceKind device) const {
  const auto place = only_on.find(to_string(value));
  return place == only_on.end() || place->second == device;
}

const std::vector<ParamValue>& ParamSpec::defaults_on(DeviceKind device) const {
  return device == DeviceKind::cuda && !cuda_defaults.empty() ? cuda_defaults : defaults;
}

std::string gpus_of(const Params& params) { return params.has("gpus") ? params.text("gpus") : ""; }

ParamSpec gpus_param() {
  ParamSpec spec =
      choice("gpus", {"each", "together"}, {"each"}, "with several ranks: one GPU at a time, or all at once");
  spec.devices = {DeviceKind::cuda};
  return spec;
}

ParamSpec choice(std::string name, std::vector<std::string> allowed, const std::vector<std::string>& defaults,
                 std::string help) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.type = ParamType::choice;
  spec.defaults.assign(defaults.begin(), defaults.end());
  spec.allowed = std::move(allowed);
  spec.help = std::move(help);
  return spec;
}

}  // namespace assay
