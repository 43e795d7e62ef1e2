// Used on processors without loops: every peak case is skipped.
#include "suites/peak/kernels.h"

namespace assay::peak {

std::span<const Kernel> kernels() { return {}; }

}  // namespace assay::peak
