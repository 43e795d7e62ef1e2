// A stand-in of CUDA's runtime for a program that only plans: it knows one GPU, by its description.
#pragma once

#include <string>

namespace assay::planning {

// From now on that is the GPU; returns its name. The description is cuDNN's (cudnn::device_description()).
std::string describe(const std::string& description);

}  // namespace assay::planning
