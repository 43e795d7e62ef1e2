// Golden files: named tensors computed by PyTorch; make_golden.py describes the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay::golden {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // exact for i32, f32 and f64
  double error = 0;            // L2 norm of PyTorch's own float32 error
};

using File = std::map<std::string, Tensor>;

// Throws Error, with the place in the file, if it is malformed.
File read(const std::filesystem::path& path);

}  // namespace assay::golden
