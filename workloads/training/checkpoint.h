// Checkpoints: all state that determines the next steps, complete or absent.
//
// Format 2, little-endian. FILE is the index: "ASSAYCKP", u32 version (2), u32 bytes of the header, u64 checksum of the
// header, the header (JSON, CheckpointIndex). Beside it a folder, FILE.a or FILE.b by turns, has a file per rank that
// wrote any state: its ranges of arrays, each at a multiple of 4096. What exists once the index is renamed into place
// is complete; the other folder is removed after that.
//
// Format 1, which is still read, is one file: the same prefix with version 1, a header of model, precision, key, meta
// and parts (name, dtype, shape, bytes, offset, checksum), then the parts, each at a multiple of 4096.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "workloads/nn/training_step.h"
#include "workloads/training/checkpoint_index.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace assay::training {

// The contents of a checkpoint beside the state. `meta` belongs to the caller.
struct CheckpointNotes {
  CheckpointIdentity identity;
  std::string layout = {};
  Json meta = Json::object();
};

struct Transfer {
  double seconds = 0;  // time of a write until it is on disk
  std::uint64_t bytes = 0;
  // Checksum of the values of all arrays, equal for equal states at any layout.
  std::string checksum;

  void add(const Transfer& other) { seconds += other.seconds, bytes += other.bytes; }
};

// All ranks call the functions below, each with the parts that it holds. A range that several ranks hold is written by
// the first of them. If a rank fails, all throw its Error, in one line with the file and the reason.

// Returns when the checkpoint is complete and on disk; until then the earlier one remains. A failure leaves nothing
// behind. All ranks must see the folder.
Transfer write_checkpoint(const std::filesystem::path& file, const CheckpointNotes& notes,
                          std::span<const nn::StatePart> parts, Device& device, Communicator& comm);

// Reads into the parts the ranges that they need, whatever ranges were written. Changes nothing unless all that is read
// is intact on all ranks. Beside the errors of read_index(), require_identity() and require_shards(): the checkpoint
// lacks values that the ranks hold, or has others. Returns layout and meta.
CheckpointNotes read_checkpoint(const std::filesystem::path& file, const CheckpointIdentity& identity,
                                std::span<const nn::StatePart> parts, Device& device, Communicator& comm,
                                Transfer* transfer = nullptr);

// The ranks that hold exactly this range of a part.
struct Holders {
  int first = 0;  // the lowest rank
  int count = 0;
};
// One for each of this rank's parts.
std::vector<Holders> holders_of(std::span<const nn::StatePart> parts, Communicator& comm);

}  // namespace assay::training
