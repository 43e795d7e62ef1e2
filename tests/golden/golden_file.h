// Golden files: named tensors that PyTorch computed, as make_golden.py describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay::golden {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // i32, f32 and f64 alike: exact
  double error = 0;            // L2 norm of PyTorch's own float32 error
};

using File = std::map<std::string, Tensor>;

// Throws Error with the place where the file is not what it should be.
File read(const std::filesystem::path& path);

}  // namespace assay::golden
