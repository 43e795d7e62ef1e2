// More memory was asked for than the host or the device has.
#pragma once

#include "harness/core/error.h"

namespace assay {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace assay
