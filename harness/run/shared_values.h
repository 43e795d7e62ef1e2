// Values that rank 0 shares with its group through the supervisor: NCCL's id.
#pragma once

#include "harness/channel/channel.h"

#include <map>
#include <string>

namespace assay {

// The supervisor's end: sends what rank 0 shares to every rank, also to those that connect later.
class SharedValues {
 public:
  // Throws Error when the sender is not rank 0, or the message is too long.
  void share(int rank, const message::Share& message, ChannelServer& channel, int ranks);
  // To a rank that has just said hello: everything shared so far.
  void send_all(int rank, ChannelServer& channel) const;
  void clear() { values_.clear(); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace assay
