// libFuzzer's entry point for the target named by ASSAY_FUZZ_TARGET.
#include "tests/fuzz/fuzz.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::fuzz::ASSAY_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
