#include "harness/run/shared_values.h"

#include "harness/core/error.h"

namespace assay {

namespace {

constexpr std::size_t max_values = 16;
constexpr std::size_t max_bytes = 4096;

}  // namespace

void SharedValues::share(int rank, const message::Share& message, ChannelServer& channel, int ranks) {
  const auto& [name, value] = message;
  if (rank != 0) throw Error(fmt::format("share {}: only rank 0 may", name));
  if (name.empty() || name.size() > max_bytes || value.size() > max_bytes)
    throw Error("share: a name or value that is empty or too long");
  if (values_.size() >= max_values && !values_.contains(name)) throw Error("share: too many values");
  values_[name] = value;
  // A rank that has not connected yet gets it when it connects.
  for (int other = 0; other < ranks; ++other) channel.send(other, message);
}

void SharedValues::send_all(int rank, ChannelServer& channel) const {
  for (const auto& [name, value] : values_) channel.send(rank, message::Share{name, value});
}

}  // namespace assay
