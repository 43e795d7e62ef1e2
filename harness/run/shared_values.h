// Values that rank 0 shares with its group through the supervisor: NCCL's id.
#pragma once

#include "harness/channel/channel.h"

#include <map>
#include <string>

namespace assay {

// The supervisor's end: sends the values that rank 0 shares to every rank, also to ranks that connect later.
class SharedValues {
 public:
  // Throws Error when the sender is not rank 0, or the message is too long.
  void share(int rank, const message::Share& message, ChannelServer& channel, int ranks);
  // Sends everything shared so far to a rank that has just connected.
  void send_all(int rank, ChannelServer& channel) const;
  void clear() { values_.clear(); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace assay
