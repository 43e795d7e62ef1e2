// The architectures of tests/architectures/published.json, by name.
#pragma once

#include "harness/core/error.h"
#include "harness/json/json.h"
#include "workloads/architecture/read.h"

#include <string>

namespace assay::test {

inline const Json& published_models() {
  static const Json models = read_json(ASSAY_SOURCE "/tests/architectures/published.json");
  return models;
}

inline Json published_config(const std::string& name) {
  for (const Json& model : published_models())
    if (model.at("name") == name) return model.at("config");
  throw Error("published.json has no " + name);
}

inline architecture::Architecture published_architecture(const std::string& name) {
  return architecture::read_architecture(published_config(name), "config.json", name);
}

}  // namespace assay::test
