// What a call is refused with.
#pragma once

#include "harness/core/error.h"

#include <string>

namespace assay::test {

// The message of the E that call() throws; empty if it throws nothing.
template <typename E = UsageError, typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace assay::test
