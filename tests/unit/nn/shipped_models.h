// The models of configs/models.
#pragma once

#include "harness/core/configs.h"
#include "harness/json/json.h"
#include "workloads/resnet/resnet.h"
#include "workloads/transformer/transformer.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace assay::nn::test {

inline std::vector<std::filesystem::path> shipped_files() { return json_files(ASSAY_SOURCE "/configs/models"); }

inline std::unique_ptr<Model> shipped(const std::string& name) {
  const std::string path = ASSAY_SOURCE "/configs/models/" + name + ".json";
  const Json json = read_json(path);
  if (json["family"] == "resnet") return resnet::make_resnet(resnet::read_config(json, path, name));
  return transformer::make_transformer(transformer::read_config(json, path, name));
}

}  // namespace assay::nn::test
