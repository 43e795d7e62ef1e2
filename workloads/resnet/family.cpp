#include "workloads/resnet/family.h"

#include "harness/core/error.h"
#include "workloads/resnet/resnet.h"
#include "workloads/training/family.h"

namespace assay {

const training::ModelFamily resnet_models{
    "resnet", "training of convolutional models: img/s, or time to an accuracy", "resnet50",
    [](const std::string& model, std::int64_t image_size) {
      const training::ModelFile file = training::open_model("resnet", model);
      resnet::Config config = resnet::read_config(file.json, file.source, file.name);
      if (image_size > 0) config.image = image_size;
      if (config.image < config.reduction())
        throw UsageError(fmt::format("image_size={}: {} needs at least {}", image_size, model, config.reduction()));
      return resnet::make_resnet(config);
    },
    true};

Family resnet_family() {
  Family made = training::workload_family<resnet_models>();
  made.faults.push_back(Fault::corrupt_image);
  return made;
}

}  // namespace assay
