#include "harness/run/shared_values.h"

#include "harness/core/error.h"
#include "harness/record/json_reader.h"

namespace assay {

namespace {

constexpr std::size_t max_values = 16;
constexpr std::size_t longest_value = 4096;

Json shared_value_message(const std::string& name, const std::string& value) {
  return {{"type", "share"}, {"name", name}, {"value", value}};
}

}  // namespace

void SharedValues::take(int rank, const Json& message, ChannelServer& channel, int ranks) {
  const JsonReader reader(message, "share");
  const std::string name = reader.text("name"), value = reader.text("value");
  if (rank != 0) throw Error(fmt::format("share {}: only rank 0 may", name));
  if (name.empty() || name.size() > longest_value || value.size() > longest_value)
    throw Error("share: a name or value that is empty or too long");
  if (values_.size() >= max_values && !values_.contains(name)) throw Error("share: too many values");
  values_[name] = value;
  // A rank that has not said hello yet is greeted with it.
  for (int other = 0; other < ranks; ++other) channel.send(other, shared_value_message(name, value));
}

void SharedValues::greet(int rank, ChannelServer& channel) const {
  for (const auto& [name, value] : values_) channel.send(rank, shared_value_message(name, value));
}

}  // namespace assay
