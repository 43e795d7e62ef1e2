// The index of a checkpoint: which ranges of which arrays lie where, with checksums. checkpoint.h describes both
// formats.
#pragma once

#include "harness/json/fwd.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace assay::training {

// 64 bits, at memory speed; detects damage, not forgery.
class Checksum {
 public:
  static constexpr std::size_t lanes = 8, block = lanes * 8;

  explicit Checksum(std::uint64_t total_bytes);
  // All pieces but the last must be whole blocks.
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;
  std::string text() const;  // 16 hexadecimal digits

 private:
  std::uint64_t state_[lanes] = {};
};
std::uint64_t checksum(std::span<const std::byte> bytes);

// The facts that a checkpoint must share with a case that continues from it. Empty: unknown (format 1), which fits
// anything.
struct CheckpointIdentity {
  std::string model;
  std::string mode;
  std::string precision;
  std::string optimizer;
  std::string data;  // the set's name and the length of a sample
  std::string seed;  // the case's seed, the plan's included
  std::string global_batch;

  static void members(auto& self, auto& io) {
    io("model", self.model), io("mode", self.mode), io("precision", self.precision), io("optimizer", self.optimizer);
    io("data", self.data), io("seed", self.seed), io("global_batch", self.global_batch);
  }
};

// Elements [first, first + bytes / element size) of an array in row-major order, in a file of a checkpoint.
struct KeptRange {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;  // shape of the whole array
  std::int64_t first = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;            // in the file
  std::vector<std::string> checksums;  // one for each piece

  static void members(auto& self, auto& io) {
    io("name", self.name), io("dtype", self.dtype), io("shape", self.shape), io("first", self.first);
    io("bytes", self.bytes), io("offset", self.offset), io("checksums", self.checksums);
  }
};

// The file of one rank.
struct KeptShard {
  int rank = 0;
  std::uint64_t bytes = 0;  // size of the file; 0: the rank wrote none
  std::vector<KeptRange> ranges;

  static void members(auto& self, auto& io) {
    io("rank", self.rank), io("bytes", self.bytes), io("ranges", self.ranges);
  }
};

struct CheckpointIndex {
  int format = 2;
  CheckpointIdentity identity;
  std::string layout;        // in words; recorded, not demanded
  std::string slot;          // "a" or "b": which folder holds the shards
  std::string checksum;      // checksum of all arrays, whatever their ranges; empty in format 1
  std::uint64_t pieces = 0;  // bytes of a piece; the last of a range may be shorter. 0: a range is one piece
  Json meta = Json::object();
  std::vector<KeptShard> shards;

  static void members(auto& self, auto& io) {
    CheckpointIdentity::members(self.identity, io);
    io("layout", self.layout), io("slot", self.slot), io("checksum", self.checksum), io("piece_bytes", self.pieces);
    io("meta", self.meta), io("shards", self.shards);
  }
};

// FILE.a or FILE.b.
std::filesystem::path slot_folder(const std::filesystem::path& file, const std::string& slot);
// The file of one rank's ranges; in format 1 the checkpoint itself.
std::filesystem::path shard_file(const std::filesystem::path& file, const CheckpointIndex& index, int rank);

// The text of an index file.
std::string index_text(const CheckpointIndex& index);
// These throw Error, in one line that names the file.
// Reads an index of either format. Throws if the file is no checkpoint, truncated, damaged, or of a newer version.
CheckpointIndex read_index(const std::filesystem::path& file);
// Throws if the checkpoint is of another model, precision, ...
void require_identity(const std::filesystem::path& file, const CheckpointIndex& index,
                      const CheckpointIdentity& identity);
// Throws if a shard is missing or truncated.
void require_shards(const std::filesystem::path& file, const CheckpointIndex& index);
[[noreturn]] void refuse_checkpoint(const std::filesystem::path& file, const std::string& why);

}  // namespace assay::training
