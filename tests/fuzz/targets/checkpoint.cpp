// Checkpoints. Input that starts with 'h' is a header and, after a zero byte, the parts: they are assembled into a file
// with a correct header checksum, so that the code after that check is reached. Any other input is a whole file.
#include "workloads/training/checkpoint.h"

#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace assay::fuzz {

namespace {

std::string file_of(std::string_view input) {
  if (!input.starts_with('h')) return std::string(input);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view header = input.substr(1, end - 1);
  const std::uint32_t version = 1, bytes = static_cast<std::uint32_t>(header.size());
  const std::uint64_t checksum = training::checksum(std::as_bytes(std::span(header)));
  std::string file = "ASSAYCKP";
  file.append(reinterpret_cast<const char*>(&version), 4).append(reinterpret_cast<const char*>(&bytes), 4);
  file.append(reinterpret_cast<const char*>(&checksum), 8).append(header);
  if (end == input.size()) return file;
  file.resize((file.size() + 4095) / 4096 * 4096);
  return file.append(input.substr(end + 1));
}

}  // namespace

void checkpoint(std::string_view input) {
  static const MemoryFile file(folder() / "a.ckpt");
  static const auto device = make_device(DeviceKind::cpu, 0);
  static const training::CheckpointIdentity identity{"m", "f32", "k"};
  std::array<float, 4> weights{1, 2, 3, 4};
  std::int64_t step = 7;
  const std::vector<nn::StatePart> parts = {{"w", DType::f32, {2, 2}, weights.data(), sizeof weights},
                                            {"step", DType::i64, {}, &step, sizeof step}};
  file.write(file_of(input));
  const bool accepted = accepts("checkpoint " + file.path() + ": ",
                                [&] { (void)training::read_checkpoint(file.path(), identity, parts, *device); });
  if (!accepted) expect(weights == std::array<float, 4>{1, 2, 3, 4} && step == 7, "a rejected checkpoint was loaded");
}

}  // namespace assay::fuzz
