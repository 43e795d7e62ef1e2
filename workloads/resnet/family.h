// The family `resnet`: training of convolutional models.
#pragma once

#include "harness/plan/family.h"

namespace assay {

Family resnet_family();

}  // namespace assay
