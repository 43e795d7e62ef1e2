// Checkpoints: everything that decides the steps to come, in one file that is whole or not there.
//
// Format, little-endian: "ASSAYCKP", u32 version (1), u32 bytes of the header, u64 checksum of the header, the header
// (JSON: model, precision, step, meta, parts with name, dtype, shape, bytes, offset, checksum), then the parts, each
// from a multiple of 4096 on. A file ends with its last part.
#pragma once

#include "harness/core/json_fwd.h"
#include "harness/device/device.h"
#include "workloads/nn/training_step.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace assay::training {

// 64 bits over bytes, at memory speed; finds damage, not forgery.
std::uint64_t checksum(std::span<const std::byte> bytes);

// What a checkpoint says of itself; it is restored only where these are equal.
struct CheckpointIdentity {
  std::string model;
  std::string precision;
  std::string key;  // of the case, with its ranks and seed
};

struct Transfer {
  double seconds = 0;  // write: until the disk has it
  std::uint64_t bytes = 0;
};

// Writes beside the file, syncs, then renames over it: an earlier checkpoint stays until the new one is whole.
// `meta` is the loop's own. Throws Error naming the file and the system's reason; nothing is left behind then.
Transfer write_checkpoint(const std::filesystem::path& file, const CheckpointIdentity& identity, const Json& meta,
                          std::span<const nn::StatePart> parts, Device& device);

// Reads into the parts, which must be those that were written, and returns meta; nothing is touched unless the whole
// file is good. Throws Error in one line: not a checkpoint, truncated, damaged (which part), of another model,
// precision or case, another version.
Json read_checkpoint(const std::filesystem::path& file, const CheckpointIdentity& identity,
                     std::span<const nn::StatePart> parts, Device& device, Transfer* transfer = nullptr);

}  // namespace assay::training
