// What rank 0 tells the other ranks of its group through the supervisor: NCCL's id.
#pragma once

#include "harness/channel/channel.h"

#include <map>
#include <string>

namespace assay {

// The supervisor's end. {"type":"share","name":"nccl_id","value":"..."} of rank 0 goes to every rank, also to those
// that connect later.
class SharedValues {
 public:
  // Throws Error when another rank than 0 sends, or the message is malformed or too long.
  void take(int rank, const Json& message, ChannelServer& channel, int ranks);
  // A rank that has just said hello is told what there is.
  void greet(int rank, ChannelServer& channel) const;
  void clear() { values_.clear(); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace assay
