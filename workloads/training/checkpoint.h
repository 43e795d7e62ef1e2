// Checkpoints: all state that determines the next steps, in one file that is complete or absent.
//
// Format, little-endian: "ASSAYCKP", u32 version (1), u32 bytes of the header, u64 checksum of the header, the header
// (JSON: model, precision, step, meta, parts with name, dtype, shape, bytes, offset, checksum), then the parts, each at
// a multiple of 4096. The file ends with the last part.
#pragma once

#include "harness/device/device.h"
#include "harness/json/fwd.h"
#include "workloads/nn/training_step.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace assay::training {

// 64 bits, at memory speed; detects damage, not forgery.
std::uint64_t checksum(std::span<const std::byte> bytes);

// Identifies a checkpoint, which is restored only if these are equal.
struct CheckpointIdentity {
  std::string model;
  std::string precision;
  std::string key;  // of the case, with ranks and seed
};

struct Transfer {
  double seconds = 0;  // of a write: until it is on disk
  std::uint64_t bytes = 0;
};

// Writes a temporary file, syncs and renames it: an earlier checkpoint stays until the new one is complete. `meta` is
// for the caller. Throws Error that names the file and the system's reason, and then leaves nothing behind.
Transfer write_checkpoint(const std::filesystem::path& file, const CheckpointIdentity& identity, const Json& meta,
                          std::span<const nn::StatePart> parts, Device& device);

// Reads into the parts, which must match those written, and returns meta. Changes nothing unless the whole file is
// intact. Throws Error in one line: not a checkpoint, truncated, damaged (which part), of another model, precision,
// case or version.
Json read_checkpoint(const std::filesystem::path& file, const CheckpointIdentity& identity,
                     std::span<const nn::StatePart> parts, Device& device, Transfer* transfer = nullptr);

}  // namespace assay::training
