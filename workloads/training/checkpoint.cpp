#include "workloads/training/checkpoint.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/members.h"
#include "harness/record/files.h"
#include "workloads/data/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace assay::training {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view magic = "ASSAYCKP";
constexpr std::uint32_t version = 1;
constexpr std::uint64_t alignment = 4096;
constexpr std::uint32_t max_header_bytes = 64u << 20;
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

struct Prefix {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t header_checksum;
};
static_assert(sizeof(Prefix) == 24 && std::endian::native == std::endian::little);

// All pieces but the last must be whole blocks.
class Checksum {
 public:
  static constexpr std::size_t lanes = 8, block = lanes * 8;

  explicit Checksum(std::uint64_t total_bytes) {
    for (std::size_t i = 0; i < lanes; ++i) state_[i] = odd * (i + 1) ^ total_bytes;
  }
  void add(std::span<const std::byte> bytes) {
    std::size_t at = 0;
    // Lanes are independent, so that the multiplications overlap.
    for (; at + block <= bytes.size(); at += block)
      for (std::size_t i = 0; i < lanes; ++i) add_word(i, bytes.data() + at + i * 8, 8);
    for (std::size_t i = 0; at < bytes.size(); at += 8, ++i)
      add_word(i, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
  }
  std::uint64_t value() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : state_) sum = mix(sum, lane ^ (lane >> 32));
    return sum ^ (sum >> 29);
  }

 private:
  static constexpr std::uint64_t odd = 0x9e3779b97f4a7c15ull;
  static std::uint64_t mix(std::uint64_t value, std::uint64_t word) { return std::rotl(value ^ word, 29) * odd; }
  void add_word(std::size_t lane, const std::byte* from, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    state_[lane] = mix(state_[lane], word);
  }

  std::array<std::uint64_t, lanes> state_{};
};

std::uint64_t aligned(std::uint64_t offset) { return (offset + alignment - 1) / alignment * alignment; }

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A part in host memory: the part itself on a CPU, else a copy.
class HostPart {
 public:
  HostPart(Device& device, const nn::StatePart& part) : part_(part) {
    if (device.kind() != DeviceKind::cpu && part.bytes > 0) staging_ = device.allocate(part.bytes, Memory::host);
  }
  std::byte* data() const { return static_cast<std::byte*>(staging_.data() ? staging_.data() : part_.data); }
  void fetch(Device& device, Stream& stream) const {
    if (!staging_.data()) return;
    device.copy(staging_.data(), part_.data, part_.bytes, stream);
    stream.synchronize();
  }
  void put(Device& device, Stream& stream) const {
    if (!staging_.data()) return;
    device.copy(part_.data, staging_.data(), part_.bytes, stream);
    stream.synchronize();
  }

 private:
  const nn::StatePart& part_;
  Buffer staging_;
};

// The temporary file of a checkpoint, removed unless it was renamed.
class Draft {
 public:
  explicit Draft(const fs::path& file) : path_(file.string() + ".tmp") {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("cannot write");
  }
  ~Draft() {
    if (fd_ >= 0) ::close(fd_);
    if (!placed_) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::span<const std::byte> bytes) {
    write_all(fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path_);
    at_ += bytes.size();
  }
  void pad_to(std::uint64_t offset) {
    static constexpr std::array<std::byte, alignment> zeros{};
    write(std::span(zeros).first(offset - at_));
  }
  void place(const fs::path& file) {
    if (::fsync(fd_) != 0) fail("cannot sync");
    if (::rename(path_.c_str(), file.c_str()) != 0) fail("cannot rename");
    placed_ = true;
    sync_folder(file.parent_path());
  }
  std::uint64_t bytes() const { return at_; }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(fmt::format("checkpoint: {} {}: {}", what, path_.string(), std::strerror(errno)));
  }

  fs::path path_;
  int fd_ = -1;
  std::uint64_t at_ = 0;
  bool placed_ = false;
};

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw Error(fmt::format("checkpoint {}: {}; remove it to start over", file.string(), why));
}

void require_same(const fs::path& file, const char* what, const std::string& found, const std::string& wanted) {
  if (found != wanted)
    refuse(file, fmt::format("is of another {}: {}, not {}", what, in_quotes(found, 200), in_quotes(wanted, 200)));
}

struct KeptPart {
  std::string name;
  std::string dtype;
  Json shape = Json::array();
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // to the first part
  std::string checksum;

  static void members(auto& self, auto& io) {
    io("name", self.name), io("dtype", self.dtype), io("shape", self.shape), io("bytes", self.bytes);
    io("offset", self.offset), io("checksum", self.checksum);
  }
};

struct Header {
  CheckpointIdentity identity;
  Json meta = Json::object();
  std::vector<KeptPart> parts;
  std::uint64_t parts_at = 0;  // offset of the first part in the file, behind the header

  static void members(auto& self, auto& io) {
    io("model", self.identity.model), io("precision", self.identity.precision), io("key", self.identity.key);
    io("meta", self.meta), io("parts", self.parts);
  }
};

// Reads the header and checks prefix and checksum.
Header read_header(const fs::path& file, const data::File& source) {
  const std::uint64_t bytes = source.bytes();
  Prefix prefix{};
  if (bytes < sizeof prefix) refuse(file, bytes == 0 ? "is empty" : "is truncated, or not an Assay checkpoint");
  source.read(&prefix, sizeof prefix, 0);
  if (std::string_view(prefix.magic.data(), magic.size()) != magic) refuse(file, "is not an Assay checkpoint");
  if (prefix.version != version)
    refuse(file, fmt::format("has format {}; this build reads {}", prefix.version, version));
  if (prefix.header_bytes > max_header_bytes) refuse(file, "is damaged (its header)");
  if (bytes < sizeof prefix + prefix.header_bytes) refuse(file, "is truncated");
  std::string text(prefix.header_bytes, '\0');
  source.read(text.data(), text.size(), sizeof prefix);
  if (checksum(as_bytes(text)) != prefix.header_checksum) refuse(file, "is damaged (its header)");
  try {
    auto header = read_text<Header>(text);
    header.parts_at = aligned(sizeof prefix + text.size());
    return header;
  } catch (const Error& error) {
    refuse(file, fmt::format("has a header that cannot be read ({})", error.what()));
  }
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  Checksum sum(bytes.size());
  sum.add(bytes);
  return sum.value();
}

Transfer write_checkpoint(const fs::path& file, const CheckpointIdentity& identity, const Json& meta,
                          std::span<const nn::StatePart> parts, Device& device) {
  std::error_code made;
  fs::create_directories(file.parent_path(), made);
  if (made) throw Error(fmt::format("checkpoint: cannot create {}: {}", file.parent_path().string(), made.message()));
  const auto stream = device.make_stream();
  Header header{identity, meta, {}, 0};
  std::uint64_t relative = 0;  // to the first part, whose offset depends on the header's length
  for (const nn::StatePart& part : parts) {
    const HostPart host(device, part);
    host.fetch(device, *stream);
    header.parts.push_back({part.name, std::string(name_of(part.dtype)), part.shape, part.bytes, relative,
                            fmt::format("{:016x}", checksum({host.data(), part.bytes}))});
    relative = aligned(relative + part.bytes);
  }
  const auto start = Clock::now();
  const std::string text = dump_line(json_of(header));
  if (text.size() > max_header_bytes) throw Error("checkpoint: too many parts");
  Prefix prefix{{}, version, static_cast<std::uint32_t>(text.size()), checksum(as_bytes(text))};
  std::memcpy(prefix.magic.data(), magic.data(), magic.size());
  Draft draft(file);
  draft.write(std::as_bytes(std::span(&prefix, 1)));
  draft.write(as_bytes(text));
  for (const nn::StatePart& part : parts) {
    const HostPart host(device, part);
    host.fetch(device, *stream);
    draft.pad_to(aligned(draft.bytes()));
    draft.write({host.data(), part.bytes});
  }
  draft.place(file);
  return {seconds_since(start), draft.bytes()};
}

Json read_checkpoint(const fs::path& file, const CheckpointIdentity& identity, std::span<const nn::StatePart> parts,
                     Device& device, Transfer* transfer) {
  const auto start = Clock::now();
  const data::File source = data::File::open(file.string());
  const Header header = read_header(file, source);
  require_same(file, "model", header.identity.model, identity.model);
  require_same(file, "precision", header.identity.precision, identity.precision);
  require_same(file, "case", header.identity.key, identity.key);
  if (header.parts.size() != parts.size())
    refuse(file, fmt::format("is of another model: it has {} parts, not {}", header.parts.size(), parts.size()));

  // Check everything before changing any part.
  std::vector<std::uint64_t> offsets;
  std::vector<std::byte> piece(piece_bytes);
  std::uint64_t bytes = header.parts_at;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const nn::StatePart& part = parts[i];
    const KeptPart& kept = header.parts[i];
    const bool same = kept.name == part.name && kept.dtype == name_of(part.dtype) && kept.shape == Json(part.shape) &&
                      kept.bytes == part.bytes;
    if (!same)
      refuse(file, fmt::format("is of another model: part {} is {}, not {}", i + 1, in_quotes(kept.name),
                               in_quotes(part.name)));
    const std::uint64_t held = source.bytes();
    if (held < header.parts_at || kept.offset > held - header.parts_at ||
        part.bytes > held - header.parts_at - kept.offset)
      refuse(file, fmt::format("is truncated (in {})", part.name));
    offsets.push_back(header.parts_at + kept.offset);
    Checksum sum(part.bytes);
    for (std::size_t at = 0; at < part.bytes; at += piece_bytes) {
      const std::size_t count = std::min(piece_bytes, part.bytes - at);
      source.read(piece.data(), count, offsets[i] + at);
      sum.add(std::span(piece).first(count));
    }
    if (fmt::format("{:016x}", sum.value()) != kept.checksum)
      refuse(file, fmt::format("is damaged (in {})", part.name));
    bytes = std::max(bytes, offsets[i] + part.bytes);
  }
  const auto stream = device.make_stream();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes == 0) continue;
    const HostPart host(device, parts[i]);
    source.read(host.data(), parts[i].bytes, offsets[i]);
    host.put(device, *stream);
  }
  if (transfer) *transfer = {seconds_since(start), bytes};
  return header.meta;
}

}  // namespace assay::training
