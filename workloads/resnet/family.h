// The family `resnet`: training of convolutional models.
#pragma once

#include "harness/plan/family.h"
#include "workloads/training/settings.h"

namespace assay {

extern const training::ModelFamily resnet_models;

Family resnet_family();

}  // namespace assay
