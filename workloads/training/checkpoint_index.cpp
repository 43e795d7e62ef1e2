#include "workloads/training/checkpoint_index.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/json/members.h"
#include "workloads/data/file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace assay::training {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic = "ASSAYCKP";
constexpr std::uint32_t version = 2;
constexpr std::uint64_t first_alignment = 4096;  // of the parts in format 1
constexpr std::uint32_t max_header_bytes = 1u << 30;

struct Prefix {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t header_checksum;
};
static_assert(sizeof(Prefix) == 24 && std::endian::native == std::endian::little);

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

constexpr std::uint64_t odd = 0x9e3779b97f4a7c15ull;
std::uint64_t mix(std::uint64_t value, std::uint64_t word) { return std::rotl(value ^ word, 29) * odd; }
std::uint64_t word_at(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

// Format 1: one whole array per part, and the key of the case, with ranks and seed, as its identity.
struct FirstPart {
  KeptRange range;
  std::string checksum;

  static void members(auto& self, auto& io) {
    KeptRange::members(self.range, io);
    io("checksum", self.checksum);
  }
};
struct FirstHeader {
  std::string model, precision, key;
  Json meta = Json::object();
  std::vector<FirstPart> parts;

  static void members(auto& self, auto& io) {
    io("model", self.model), io("precision", self.precision), io("key", self.key), io("meta", self.meta);
    io("parts", self.parts);
  }
};

// The value of a parameter in a key; empty if there is none.
std::string key_value(const std::string& key, const std::string& name) {
  const std::size_t at = key.rfind(name + "=");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 1;
  return key.substr(begin, key.find_first_of("/ ", begin) - begin);
}

double key_number(const std::string& key, const std::string& name) {
  return whole_number<double>(key_value(key, name)).value_or(0);
}

CheckpointIdentity identity_of(const FirstHeader& header) {
  CheckpointIdentity identity{header.model, key_value(header.key, "/mode"), header.precision, {}, {}, {}, {}};
  if (identity.mode.empty()) return identity;
  const bool weak = identity.mode == "throughput" && key_value(header.key, "/scaling") == "weak";
  identity.seed = fmt::format("{:.0f}", key_number(header.key, "/seed") + key_number(header.key, " seed"));
  identity.global_batch =
      fmt::format("{:.0f}", key_number(header.key, "/micro_batch") * key_number(header.key, "/accumulate") *
                                (weak ? key_number(header.key, " ranks") : 1.0));
  return identity;
}

CheckpointIndex from_first(FirstHeader header, std::uint64_t header_end, std::uint64_t file_bytes) {
  CheckpointIndex index;
  index.format = 1;
  index.identity = identity_of(header);
  const double ranks = key_number(header.key, " ranks");
  index.layout = fmt::format("{:.0f} rank{}", ranks, ranks == 1 ? "" : "s");
  index.meta = std::move(header.meta);
  KeptShard shard{0, file_bytes, {}};
  const std::uint64_t parts_at = (header_end + first_alignment - 1) / first_alignment * first_alignment;
  for (FirstPart& part : header.parts) {
    // Beyond any file if the sum wraps.
    part.range.offset = part.range.offset > UINT64_MAX - parts_at ? UINT64_MAX : part.range.offset + parts_at;
    part.range.first = 0;
    part.range.checksums = {std::move(part.checksum)};
    shard.ranges.push_back(std::move(part.range));
  }
  index.shards.push_back(std::move(shard));
  return index;
}

}  // namespace

Checksum::Checksum(std::uint64_t total_bytes) {
  for (std::size_t i = 0; i < lanes; ++i) state_[i] = odd * (i + 1) ^ total_bytes;
}

void Checksum::add(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  // Lanes are independent, so that the multiplications overlap.
  for (; at + block <= bytes.size(); at += block)
    for (std::size_t i = 0; i < lanes; ++i) state_[i] = mix(state_[i], word_at(bytes.data() + at + i * 8, 8));
  for (std::size_t i = 0; at < bytes.size(); at += 8, ++i)
    state_[i] = mix(state_[i], word_at(bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at)));
}

std::uint64_t Checksum::value() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : state_) sum = mix(sum, lane ^ (lane >> 32));
  return sum ^ (sum >> 29);
}

std::string Checksum::text() const { return fmt::format("{:016x}", value()); }

std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum(bytes.size());
  sum.add(bytes);
  return sum.value();
}

void refuse_checkpoint(const fs::path& file, const std::string& why) {
  throw Error(fmt::format("checkpoint {}: {}", file.string(), why));
}

fs::path slot_folder(const fs::path& file, const std::string& slot) { return file.string() + "." + slot; }

fs::path shard_file(const fs::path& file, const CheckpointIndex& index, int rank) {
  return index.format == 1 ? file : slot_folder(file, index.slot) / fmt::format("rank-{}", rank);
}

std::string index_text(const CheckpointIndex& index) {
  const std::string header = dump_line(json_of(index));
  if (header.size() > max_header_bytes) throw Error("checkpoint: too many arrays");
  Prefix prefix{{}, version, static_cast<std::uint32_t>(header.size()), checksum(as_bytes(header))};
  std::memcpy(prefix.magic.data(), magic.data(), magic.size());
  return std::string(reinterpret_cast<const char*>(&prefix), sizeof prefix) + header;
}

CheckpointIndex read_index(const fs::path& file) {
  std::error_code none;
  if (fs::is_directory(file, none))
    refuse_checkpoint(file, "is a folder; a checkpoint is the file beside it that ends with .ckpt");
  const data::File source = data::File::try_open(file.c_str(), false);
  if (!source) refuse_checkpoint(file, fmt::format("cannot be opened: {}", std::strerror(errno)));
  const std::uint64_t bytes = source.bytes();
  Prefix prefix{};
  if (bytes < sizeof prefix)
    refuse_checkpoint(file, bytes == 0 ? "is empty" : "is truncated, or not an Assay checkpoint");
  source.read(&prefix, sizeof prefix, 0);
  if (std::string_view(prefix.magic.data(), magic.size()) != magic)
    refuse_checkpoint(file, "is not an Assay checkpoint");
  if (prefix.version < 1 || prefix.version > version)
    refuse_checkpoint(file, fmt::format("has format {}; this build reads 1 to {}", prefix.version, version));
  if (prefix.header_bytes > max_header_bytes) refuse_checkpoint(file, "is damaged (its header)");
  if (bytes < sizeof prefix + prefix.header_bytes) refuse_checkpoint(file, "is truncated");
  std::string text(prefix.header_bytes, '\0');
  source.read(text.data(), text.size(), sizeof prefix);
  if (checksum(as_bytes(text)) != prefix.header_checksum) refuse_checkpoint(file, "is damaged (its header)");
  try {
    if (prefix.version == 1) return from_first(read_text<FirstHeader>(text), sizeof prefix + text.size(), bytes);
    auto index = read_text<CheckpointIndex>(text);
    if (index.slot != "a" && index.slot != "b") throw Error("slot: neither a nor b");
    if (index.pieces == 0 || index.pieces % Checksum::block != 0)
      throw Error(fmt::format("piece_bytes: not a multiple of {}", Checksum::block));
    return index;
  } catch (const Error& error) {
    refuse_checkpoint(file, fmt::format("has a header that cannot be read ({})", error.what()));
  }
}

void require_identity(const fs::path& file, const CheckpointIndex& index, const CheckpointIdentity& identity) {
  const Json found = json_of(index.identity), wanted = json_of(identity);
  for (const auto& [name, value] : wanted.items()) {
    const auto own = value.get<std::string>(), other = found.at(name).get<std::string>();
    if (own.empty() || other.empty() || own == other) continue;
    if (name == "data")
      refuse_checkpoint(file, fmt::format("is of other data: {}, not {}", in_quotes(other, 200), in_quotes(own, 200)));
    const bool batch = name == "global_batch";
    refuse_checkpoint(
        file, fmt::format("is of another {}: {}, not {}{}", batch ? "global batch" : name, in_quotes(other, 200),
                          in_quotes(own, 200), batch ? "; scaling=strong keeps the batch at any number of ranks" : ""));
  }
}

void require_shards(const fs::path& file, const CheckpointIndex& index) {
  for (const KeptShard& shard : index.shards) {
    if (shard.bytes == 0) continue;
    const fs::path path = shard_file(file, index, shard.rank);
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) refuse_checkpoint(file, fmt::format("lacks its file {}: {}", path.string(), error.message()));
    if (bytes < shard.bytes)
      refuse_checkpoint(file, fmt::format("is truncated: {} has {} of {} bytes", path.string(), bytes, shard.bytes));
  }
}

}  // namespace assay::training
