// The configuration of a ResNet, read from configs/models/*.json.
#pragma once

#include "harness/json/fwd.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::resnet {

enum class BlockKind { basic, bottleneck };

struct Config {
  std::string name;
  BlockKind block = BlockKind::bottleneck;
  std::vector<std::int64_t> stages;  // blocks per stage; every stage after the first halves the image
  std::int64_t width = 64;           // channels of the first stage; each stage doubles them
  std::int64_t groups = 1;           // groups of the 3 x 3 convolutions
  std::int64_t classes = 1000;
  std::int64_t image = 224;  // height and width
  bool small_stem = false;   // 3 x 3 without pooling, for small images; else 7 x 7 with stride 2, then pooling
  // Pixels of the image, along a side, for each pixel of the last stage.
  std::int64_t reduction() const { return (small_stem ? 1 : std::int64_t{4}) << (stages.size() - 1); }
  bool zero_last_scale = false;  // the last norm of each block starts at zero, so that blocks start as identities
};

// Throws UsageError with a line "FILE: POINTER: WHAT" for each error. `source` is what messages call the JSON.
Config read_config(const Json& json, const std::string& source, const std::string& name);

}  // namespace assay::resnet
