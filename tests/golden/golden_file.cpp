#include "tests/golden/golden_file.h"

#include "harness/core/error.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace assay::golden {

namespace {

template <typename T>
void read_values(std::istream& in, std::vector<double>& values) {
  for (double& value : values) {
    T read{};
    in.read(reinterpret_cast<char*>(&read), sizeof read);
    value = static_cast<double>(read);
  }
}

}  // namespace

File read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || line != "assay-golden 1")
    throw Error(fmt::format("{}: not a golden file of version 1", path.string()));
  File file;
  while (std::getline(in, line)) {
    std::istringstream header(line);
    std::string name, dtype;
    Tensor tensor;
    header >> name >> dtype >> tensor.error;
    const bool valid = !header.fail();
    std::int64_t count = 1;
    for (std::int64_t size = 0; header >> size; count *= size) tensor.shape.push_back(size);
    if (!valid || !header.eof() || count < 1 || count > (1 << 24))
      throw Error(fmt::format("{}: '{}' is not a tensor", path.string(), line.substr(0, 80)));
    tensor.values.resize(static_cast<std::size_t>(count));
    if (dtype == "f64")
      read_values<double>(in, tensor.values);
    else if (dtype == "f32")
      read_values<float>(in, tensor.values);
    else if (dtype == "i32")
      read_values<std::int32_t>(in, tensor.values);
    else
      throw Error(fmt::format("{}: {} has unknown type '{}'", path.string(), name, dtype));
    if (!in) throw Error(fmt::format("{}: ends in the middle of {}", path.string(), name));
    file.emplace(name, std::move(tensor));
  }
  return file;
}

}  // namespace assay::golden
