// A case's order to the message that the ranks get, and back.
#pragma once

#include "harness/channel/messages.h"
#include "harness/run/execute.h"

#include <span>

namespace assay {

message::Case to_message(const CaseOrder& order, int index);
// Throws Error on a family that this binary does not have, and on values of a wrong type.
CaseOrder order_from(const message::Case& message, std::span<const Family> families);

}  // namespace assay
