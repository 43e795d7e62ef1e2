// The protocol as JSON, and its hash.
#include "harness/record/protocol.h"

#include "harness/core/error.h"
#include "harness/core/words.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace assay {

namespace {

// One spelling per value: 3 and 3.0 are the same number.
std::string canonical(const Json& value) {
  return value.is_number() ? fmt::format("{}", value.get<double>()) : value.dump();
}

}  // namespace

void Protocol::set_gate(int launches) { details["gate"] = fmt::format("launches={}", launches); }

int Protocol::gated_launches() const {
  const auto gate = details.find("gate");
  int launches = 0;
  return gate != details.end() && std::sscanf(gate->second.c_str(), "launches=%d", &launches) == 1 ? launches : 0;
}

Json Protocol::to_json() const {
  Json json;
  json["form"] = word_of(form);
  json["data"] = data;
  json["cache"] = word_of(cache);
  json["batching"] = word_of(batching);
  json["timer"] = timer;
  json["warmup_seconds"] = warmup_seconds;
  json["min_samples"] = min_samples;
  json["max_samples"] = max_samples;
  json["max_seconds"] = max_seconds;
  json["target_relative_ci"] = target_relative_ci;
  for (const auto& [name, value] : details) {
    ASSAY_CHECK(!json.contains(name) && name != "hash", "protocol detail \"{}\" has the name of a field", name);
    json[name] = value;
  }
  json["hash"] = protocol_hash(json);
  return json;
}

std::string Protocol::hash() const { return to_json()["hash"].get<std::string>(); }

std::string protocol_hash(const Json& protocol) {
  std::map<std::string, std::string> fields;  // sorted: the order in a file means nothing
  for (const auto& [name, value] : protocol.items())
    if (name != "hash") fields[name] = canonical(value);
  std::uint64_t hash = 14695981039346656037ull;  // 64-bit FNV-1a
  const auto mix = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    hash = (hash ^ 0xffu) * 1099511628211ull;  // no byte of UTF-8 text: parts cannot run together
  };
  for (const auto& [name, value] : fields) {
    mix(name);
    mix(value);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace assay
