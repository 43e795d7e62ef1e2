#include "suites/dataloader/dataloader.h"

#include "suites/dataloader/loader_case.h"
#include "suites/dataloader/source.h"
#include "workloads/data/generated_set.h"
#include "workloads/data/image_stream.h"
#include "workloads/data/token_stream.h"

namespace assay {

namespace dataloader {

namespace {

Estimate estimate(const Params& params, const World&) {
  Estimate estimate;
  const auto stage = params.choice<Stage>("stage");
  constexpr double typical_image = 110e3, typical_crop = 500e3;
  // The loader that is measured, whose memory the allocator may keep, and two loaders that are compared afterwards.
  constexpr int loaders = 3;
  if (params.choice<Kind>("kind") == Kind::token) {
    const auto batch = static_cast<double>(token_batch * data::window_bytes(window_length));
    estimate.items = static_cast<double>(token_batch * window_length);
    estimate.bytes = estimate.items * 2;
    estimate.memory_bytes = stage == Stage::read ? 1e6 : loaders * batch * prefetch_batches;
    return estimate;
  }
  const auto sample = static_cast<double>(data::sample_bytes(image_size));
  estimate.items = static_cast<double>(image_batch);
  estimate.bytes = estimate.items * typical_image;
  if (stage == Stage::batch || stage == Stage::all)
    estimate.memory_bytes += loaders * estimate.items * sample * prefetch_batches;
  if (stage == Stage::decode) {
    // A user's set has not been opened yet: use the most that the case keeps.
    const bool generated = params.text("path") == generated_path;
    estimate.memory_bytes += generated ? data::default_images * typical_image : static_cast<double>(decode_input_bytes);
  }
  if (stage == Stage::augment) estimate.memory_bytes += augment_inputs * typical_crop;
  if (stage == Stage::batch) estimate.memory_bytes += augment_inputs * sample;
  estimate.memory_bytes += 4e6 * static_cast<double>(worker_count(params));
  return estimate;
}

std::optional<std::string> conflict(const Params& params, const World&) {
  const PathCheck& check = check_path(params.choice<Kind>("kind"), params.text("path"));
  if (check.problem.empty() || check.other_kind) return std::nullopt;
  return check.problem;
}

}  // namespace

}  // namespace dataloader

Family dataloader_family() {
  Family family;
  family.name = "dataloader";
  family.summary = "training samples per second from image folders, tar shards and token files, by stage and in all";
  family.params = {
      axis::choice<dataloader::Kind>("kind").runs({"image"}).doc("kind of samples"),
      axis::text("path", dataloader::generated_path)
          .doc("folder of images, tar shards, or a token file (raw uint16; uint32 if its name ends in .u32 or "
               ".u32.bin)"),
      // On a GPU samples end in its memory; stages that leave no samples behind are for the CPU alone.
      axis::choice<dataloader::Stage>("stage")
          .only(DeviceKind::cpu, {"read", "decode", "augment"})
          .doc("part of the pipeline that is measured; all: the whole; on a GPU into its memory"),
      axis::count("workers", {"all"})
          .runs({1, "all"})
          .range(1, 1024)
          .doc("worker threads, pinned: a number, or one per core"),
      axis::choice<dataloader::Cache>("cache").runs({"warm"}).doc(
          "where files are read from: warm: the page cache; cold: the disk (O_DIRECT)"),
  };
  family.estimate = dataloader::estimate;
  family.make = [](const Params& params) {
    const bool tokens = params.choice<dataloader::Kind>("kind") == dataloader::Kind::token;
    return tokens ? dataloader::make_token_case(params) : dataloader::make_image_case(params);
  };
  family.faults = {Fault::bit_flip, Fault::corrupt_image};
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  family.conflict = dataloader::conflict;
  return family;
}

}  // namespace assay
