#include "cli/catalogue.h"

// To add a family, add its line: NAME stands for the function NAME_family(), and `assay list` keeps this order.
#define ASSAY_FAMILIES(FAMILY) \
  FAMILY(peak)                 \
  FAMILY(gemm)                 \
  FAMILY(memory)               \
  FAMILY(transfer)             \
  FAMILY(collective)           \
  FAMILY(dataloader)           \
  FAMILY(launch)               \
  FAMILY(command)              \
  FAMILY(resnet)               \
  FAMILY(transformer)          \
  FAMILY(llama)                \
  FAMILY(slice)

namespace assay {

#define ASSAY_DECLARE(name) Family name##_family();
ASSAY_FAMILIES(ASSAY_DECLARE)

namespace cli {

std::span<const Family> catalogue() {
#define ASSAY_CALL(name) name##_family(),
  static const std::vector<Family> families = {ASSAY_FAMILIES(ASSAY_CALL)};
  return families;
}

}  // namespace cli

}  // namespace assay
