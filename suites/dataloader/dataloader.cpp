#include "suites/dataloader/dataloader.h"

#include "suites/dataloader/image_case.h"
#include "suites/dataloader/loader_case.h"
#include "suites/dataloader/source.h"
#include "suites/dataloader/token_case.h"
#include "workloads/data/generated_set.h"
#include "workloads/data/image_stream.h"
#include "workloads/data/token_stream.h"

namespace assay {

namespace dataloader {

namespace {

Estimate estimate(const Params& params, const World&) {
  Estimate estimate;
  const std::string& stage = params.text("stage");
  constexpr double typical_image = 110e3, typical_crop = 500e3;
  if (params.text("kind") == "token") {
    const auto batch = static_cast<double>(token_batch * data::window_bytes(window_length));
    estimate.items = static_cast<double>(token_batch * window_length);
    estimate.bytes = estimate.items * 2;
    estimate.memory_bytes = stage == "read" ? 1e6 : batch * prefetch_batches;
    return estimate;
  }
  const auto sample = static_cast<double>(data::sample_bytes(image_size));
  estimate.items = static_cast<double>(image_batch);
  estimate.bytes = estimate.items * typical_image;
  if (stage == "batch" || stage == "all") estimate.memory_bytes += estimate.items * sample * prefetch_batches;
  if (stage == "decode") {
    // A user's set is not counted before it is opened: at most what the case would keep.
    const bool generated = params.text("path") == generated_path;
    estimate.memory_bytes += generated ? data::default_images * typical_image : static_cast<double>(decode_input_bytes);
  }
  if (stage == "augment") estimate.memory_bytes += augment_inputs * typical_crop;
  if (stage == "batch") estimate.memory_bytes += augment_inputs * sample;
  estimate.memory_bytes += 4e6 * static_cast<double>(worker_count(params));
  return estimate;
}

std::optional<std::string> conflict(const Params& params, const World&) {
  const PathCheck& check = check_path(params.text("kind"), params.text("path"));
  if (check.problem.empty() || check.other_kind) return std::nullopt;
  return check.problem;
}

}  // namespace

}  // namespace dataloader

Family dataloader_family() {
  Family family;
  family.name = "dataloader";
  family.summary = "training samples a second from image folders, tar shards and token files, each stage alone and all";
  const auto words = [](std::vector<std::string> names) { return names; };
  const auto values = [](std::vector<std::string> names) {
    return std::vector<ParamValue>(names.begin(), names.end());
  };
  family.params = {
      {"kind", ParamType::choice, values({"image"}), words({"image", "token"}), {}, {}, "what the samples are", {}},
      {"path",
       ParamType::text,
       values({dataloader::generated_path}),
       {},
       {},
       {},
       "folder of images, tar shards, or a token file (raw uint16; uint32 where its name ends in .u32 or .u32.bin)",
       {}},
      {"stage",
       ParamType::choice,
       values({"read", "decode", "augment", "batch", "all"}),
       words({"read", "decode", "augment", "batch", "all"}),
       {},
       {},
       "part of the pipeline that is measured; all: the whole; on a GPU into its memory",
       {}},
      {"workers",
       ParamType::count,
       {std::int64_t{1}, std::string("all")},
       words({"all"}),
       1.0,
       1024.0,
       "worker threads, pinned: a number, or one a core",
       {}},
      {"cache",
       ParamType::choice,
       values({"warm"}),
       words({"warm", "cold"}),
       {},
       {},
       "where files are read from: warm: the page cache; cold: the disk (O_DIRECT)",
       {}},
  };
  family.estimate = dataloader::estimate;
  family.make = [](const Params& params) {
    return params.text("kind") == "token" ? dataloader::make_token_case(params) : dataloader::make_image_case(params);
  };
  // On a GPU the samples go on to its memory; what leaves none behind is the CPU's alone.
  for (ParamSpec& spec : family.params)
    if (spec.name == "stage")
      spec.only_on = {{"read", DeviceKind::cpu}, {"decode", DeviceKind::cpu}, {"augment", DeviceKind::cpu}};
  family.faults = {Fault::bit_flip, Fault::corrupt_image};
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  family.conflict = dataloader::conflict;
  return family;
}

}  // namespace assay
