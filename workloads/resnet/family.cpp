#include "workloads/resnet/family.h"

#include "workloads/resnet/resnet.h"
#include "workloads/training/family.h"

namespace assay {

const training::ModelFamily resnet_models{
    "resnet", "training of convolutional models: img/s, or time to an accuracy", "resnet50",
    [](const std::string& model) {
      const training::ModelFile file = training::open_model("resnet", model);
      return resnet::make_resnet(resnet::read_config(file.json, file.source, file.name));
    }};

Family resnet_family() {
  Family made = training::workload_family<resnet_models>();
  made.faults.push_back(Fault::corrupt_image);
  return made;
}

}  // namespace assay
