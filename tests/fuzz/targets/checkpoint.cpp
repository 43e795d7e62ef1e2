// Checkpoints. Input that starts with 'h' is the header of format 1 and, after a zero byte, the parts; with 'i' the
// header of an index and, after a zero byte, the ranges of rank 0. They are assembled with a correct header checksum,
// so that the code after that check is reached. Any other input is a whole file. What is read is written and read
// again.
#include "workloads/training/checkpoint.h"

#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace assay::fuzz {

namespace {

std::string with_prefix(std::uint32_t version, std::string_view header) {
  const std::uint32_t bytes = static_cast<std::uint32_t>(header.size());
  const std::uint64_t checksum = training::checksum(std::as_bytes(std::span(header)));
  std::string file = "ASSAYCKP";
  file.append(reinterpret_cast<const char*>(&version), 4).append(reinterpret_cast<const char*>(&bytes), 4);
  return file.append(reinterpret_cast<const char*>(&checksum), 8).append(header);
}

}  // namespace

void checkpoint(std::string_view input) {
  static const MemoryFile file(folder() / "a.ckpt");
  static const auto shard = [] {
    std::filesystem::create_directory(folder() / "a.ckpt.a");
    return std::make_unique<MemoryFile>(folder() / "a.ckpt.a" / "rank-0");
  }();
  static const auto device = make_device(DeviceKind::cpu, 0);
  static const auto comm = make_self_communicator();
  static const training::CheckpointIdentity identity{"m", "throughput", "f32", "adamw", "d", "0", "8"};
  std::array<float, 4> weights{1, 2, 3, 4};
  std::int64_t step = 7;
  const std::vector<nn::StatePart> parts = {{"w", DType::f32, {2, 2}, weights.data(), sizeof weights},
                                            {"step", DType::i64, {}, &step, sizeof step}};
  const bool first = input.starts_with('h'), index = input.starts_with('i');
  if (first || index) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    const std::string_view data = end < input.size() ? input.substr(end + 1) : std::string_view();
    std::string text = with_prefix(first ? 1 : 2, input.substr(1, end - 1));
    if (first && end < input.size()) text.append((4096 - text.size() % 4096) % 4096, '\0').append(data);
    file.write(text);
    shard->write(index ? data : std::string_view());
  } else {
    file.write(input);
  }
  training::CheckpointNotes notes;
  training::Transfer first_read, written, second_read;
  const bool accepted = accepts("checkpoint " + file.path() + ": ", [&] {
    notes = training::read_checkpoint(file.path(), identity, parts, *device, *comm, &first_read);
  });
  if (!accepted)
    return expect(weights == std::array<float, 4>{1, 2, 3, 4} && step == 7, "a rejected checkpoint was loaded");
  const std::filesystem::path copy = folder() / "copies" / "b.ckpt";
  written = training::write_checkpoint(copy, notes, parts, *device, *comm);
  weights = {}, step = 0;
  const training::CheckpointNotes again =
      training::read_checkpoint(copy, notes.identity, parts, *device, *comm, &second_read);
  expect(again.meta == notes.meta && again.layout == notes.layout, "other notes than were written");
  expect(first_read.checksum == written.checksum && written.checksum == second_read.checksum,
         "other values than were written");
}

}  // namespace assay::fuzz
