// cuDNN's attention in the emulation: none, so that products and softmax run in its place.
#include "workloads/ops/cuda/cudnn/attention.h"

namespace assay::ops::cudnn {

Plans attention_plans(const AttentionGraph&, const Limits&) { return {{}, "no cuDNN attention in the emulation"}; }

}  // namespace assay::ops::cudnn
