#include "workloads/training/checkpoint.h"

#include "harness/comm/gather.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/json/members.h"
#include "workloads/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

namespace assay::training {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t alignment = 4096;
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

std::uint64_t aligned(std::uint64_t offset) { return (offset + alignment - 1) / alignment * alignment; }

// Runs `fn` on this rank; returns when all ranks have. If it failed on any, all throw the error of the first.
void together(Communicator& comm, const std::function<void()>& fn) {
  std::string why;
  try {
    fn();
  } catch (const std::exception& error) {
    why = one_line(error.what(), 1000);
  }
  const std::vector<std::string> all = gather_texts(comm, why);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty()) throw Error(all.size() > 1 ? fmt::format("rank {}: {}", rank, all[rank]) : all[rank]);
}

// A part in host memory: the part itself on a CPU, else a copy.
class HostPart {
 public:
  HostPart(Device& device, const nn::StatePart& part) : part_(part) {
    if (device.kind() != DeviceKind::cpu && part.bytes > 0) staging_ = device.allocate(part.bytes, Memory::host);
  }
  std::byte* data() const { return static_cast<std::byte*>(staging_.data() ? staging_.data() : part_.data); }
  std::span<const std::byte> bytes() const { return {data(), part_.bytes}; }
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

// A new file for a rank's ranges, in a folder that rank 0 has made.
class ShardFile {
 public:
  explicit ShardFile(const fs::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0)
      fail("create", errno == ENOENT ? "rank 0 made the folder, but this rank does not see it; ranks that divide the "
                                       "state must share the folder"
                                     : std::strerror(errno));
  }
  ~ShardFile() { ::close(fd_); }
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    write_all(fd_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path_);
    at_ += bytes.size();
  }
  // Returns the offset of what is written next.
  std::uint64_t align() {
    static constexpr std::array<std::byte, alignment> zeros{};
    write(std::span(zeros).first(aligned(at_) - at_));
    return at_;
  }
  void sync() const {
    if (::fsync(fd_) != 0) fail("sync", std::strerror(errno));
  }
  std::uint64_t bytes() const { return at_; }

 private:
  [[noreturn]] void fail(const char* what, const char* why) const {
    throw Error(fmt::format("cannot {} {}: {}", what, path_.string(), why));
  }

  fs::path path_;
  int fd_ = -1;
  std::uint64_t at_ = 0;
};

std::uint64_t hashed(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9e3779b97f4a7c15ull;
  return value ^ (value >> 29);
}

template <typename Word>
std::uint64_t sum_of_words(std::uint64_t key, std::int64_t first, std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof(Word); ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    sum += hashed(hashed(key + (static_cast<std::uint64_t>(first) + i) * 0xd1342543de82ef95ull) ^ word);
  }
  return sum;
}

// The sum over elements from `first` of a hash of the array, the index and the value: sums of ranges add up to that of
// the array, however it is divided.
std::uint64_t sum_of(const nn::StatePart& part, std::int64_t first, std::span<const std::byte> bytes) {
  const std::string array = fmt::format("{} {} {}", part.name, name_of(part.dtype), fmt::join(part.shape, " "));
  const std::uint64_t key = checksum(std::as_bytes(std::span(array)));
  switch (size_of(part.dtype)) {
    case 1: return sum_of_words<std::uint8_t>(key, first, bytes);
    case 2: return sum_of_words<std::uint16_t>(key, first, bytes);
    case 4: return sum_of_words<std::uint32_t>(key, first, bytes);
    default: return sum_of_words<std::uint64_t>(key, first, bytes);
  }
}

std::uint64_t total_of(Communicator& comm, std::uint64_t own) {
  const std::vector<std::uint64_t> all = gather(comm, own);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

// A range of a shard that a part takes bytes from.
struct Source {
  const KeptShard* shard;
  const KeptRange* range;
  std::uint64_t from;  // byte of the range
  std::uint64_t to;    // byte of the part
  std::uint64_t bytes;
};

using Kept = std::map<std::string, std::vector<std::pair<const KeptShard*, const KeptRange*>>>;

std::string shape_text(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  return fmt::format("{} ({})", in_quotes(dtype), fmt::join(shape, ", "));
}

// The ranges by array, each array's in order.
Kept by_name(const CheckpointIndex& index) {
  Kept kept;
  for (const KeptShard& shard : index.shards)
    for (const KeptRange& range : shard.ranges) kept[range.name].emplace_back(&shard, &range);
  for (auto& [name, ranges] : kept)
    std::ranges::stable_sort(ranges, [](const auto& a, const auto& b) { return a.second->first < b.second->first; });
  return kept;
}

// Where the elements of a part are.
std::vector<Source> sources_of(const fs::path& file, const Kept& kept, const nn::StatePart& part) {
  const auto found = kept.find(part.name);
  if (found == kept.end()) refuse_checkpoint(file, fmt::format("is of another model: it has no {}", part.name));
  const std::string dtype(name_of(part.dtype));
  const auto total = std::accumulate(part.shape.begin(), part.shape.end(), std::int64_t{1}, std::multiplies<>());
  const auto element = static_cast<std::int64_t>(size_of(part.dtype));
  const std::int64_t end = part.first + part.count();
  std::vector<Source> sources;
  std::int64_t at = part.first;
  for (const auto& [shard, range] : found->second) {
    if (range->dtype != dtype || range->shape != part.shape)
      refuse_checkpoint(file, fmt::format("is of another model: {} is {}, not {}", part.name,
                                          shape_text(range->dtype, range->shape), shape_text(dtype, part.shape)));
    const auto count = static_cast<std::int64_t>(range->bytes / static_cast<std::uint64_t>(element));
    if (range->first < 0 || range->first > total || count < 0 || count > total - range->first)
      refuse_checkpoint(file, fmt::format("is damaged (the place of {})", part.name));
    const std::int64_t stop = std::min(end, range->first + count);
    if (range->first > at || stop <= at) continue;
    sources.push_back({shard, range, static_cast<std::uint64_t>((at - range->first) * element),
                       static_cast<std::uint64_t>((at - part.first) * element),
                       static_cast<std::uint64_t>((stop - at) * element)});
    at = stop;
  }
  if (at < end) refuse_checkpoint(file, fmt::format("lacks elements {} to {} of {}", at, end - 1, part.name));
  return sources;
}

// The files of a checkpoint, opened when they are first read.
class ShardFiles {
 public:
  ShardFiles(const fs::path& file, const CheckpointIndex& index) : file_(file), index_(index) {}

  // Checks the pieces that the source lies in; returns the sum of the elements that the part takes.
  std::uint64_t verify(const nn::StatePart& part, const Source& source) {
    const KeptRange& range = *source.range;
    const data::File& opened = open(*source.shard);
    const std::uint64_t held = opened.bytes();
    if (range.offset > held || range.bytes > held - range.offset)
      refuse_checkpoint(file_, fmt::format("is truncated (in {})", range.name));
    const std::uint64_t element = size_of(part.dtype), end = source.from + source.bytes;
    std::uint64_t all = 0;
    const std::uint64_t length = index_.pieces > 0 ? index_.pieces : std::max<std::uint64_t>(1, range.bytes);
    for (std::uint64_t piece = source.from / length; piece * length < end; ++piece) {
      const std::uint64_t begin = piece * length, bytes = std::min(length, range.bytes - begin);
      Checksum sum(bytes);
      for (std::uint64_t done = 0; done < bytes; done += block_.size()) {
        const std::size_t count = std::min<std::uint64_t>(block_.size(), bytes - done);
        opened.read(block_.data(), count, range.offset + begin + done);
        sum.add(std::span(block_).first(count));
        const std::uint64_t at = begin + done;
        const std::uint64_t low = std::max(at, source.from), high = std::min(at + count, end);
        if (low < high)
          all += sum_of(part, range.first + static_cast<std::int64_t>(low / element),
                        std::span(block_).subspan(low - at, high - low));
      }
      if (piece >= range.checksums.size() || sum.text() != range.checksums[piece])
        refuse_checkpoint(file_, fmt::format("is damaged (in {})", range.name));
      read_ += bytes;
    }
    return all;
  }
  void read(const Source& source, std::byte* part) {
    open(*source.shard).read(part + source.to, source.bytes, source.range->offset + source.from);
  }
  std::uint64_t bytes_read() const { return read_; }

 private:
  const data::File& open(const KeptShard& shard) {
    data::File& opened = files_[shard.rank];
    if (opened) return opened;
    const fs::path path = shard_file(file_, index_, shard.rank);
    opened = data::File::try_open(path.c_str(), false);
    if (!opened) refuse_checkpoint(file_, fmt::format("lacks its file {}: {}", path.string(), std::strerror(errno)));
    return opened;
  }

  const fs::path& file_;
  const CheckpointIndex& index_;
  std::map<int, data::File> files_;
  std::vector<std::byte> block_ = std::vector<std::byte>(piece_bytes);
  std::uint64_t read_ = 0;
};

// The slot of the checkpoint in place; empty if there is none, or none that can be read.
std::string slot_in_use(const fs::path& file) {
  try {
    return read_index(file).slot;
  } catch (const Error&) {
    return {};
  }
}

// The folder of a checkpoint being written, made and in the end removed by rank 0, unless the index names it.
class Draft {
 public:
  Draft(const fs::path& file, Communicator& comm) : file_(file), owner_(comm.rank() == 0) {
    together(comm, [&] {
      if (!owner_) return;
      make_folder(file.parent_path());
      slot_ = slot_in_use(file) == "a" ? "b" : "a";
      // An attempt that was killed left it.
      fs::remove_all(folder());
      remove_temporaries(file.parent_path());
      make_folder(folder());
    });
    slot_ = comm.broadcast_value(slot_ == "a" ? 1 : 0) > 0.5 ? "a" : "b";
  }
  ~Draft() {
    std::error_code ignored;
    if (owner_ && !kept_ && slot_in_use(file_) != slot_) fs::remove_all(folder(), ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void keep() { kept_ = true; }
  const std::string& slot() const { return slot_; }
  fs::path folder() const { return slot_folder(file_, slot_); }

 private:
  static void make_folder(const fs::path& folder) {
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) throw Error(fmt::format("cannot create {}: {}", folder.string(), error.message()));
  }

  const fs::path& file_;
  bool owner_;
  bool kept_ = false;
  std::string slot_;
};

// Writes the parts that this rank is the first to hold; adds up their sums.
KeptShard write_shard(const fs::path& path, std::span<const nn::StatePart> parts, const std::vector<Holders>& holders,
                      int rank, Device& device, std::uint64_t& sum) {
  KeptShard shard{rank, 0, {}};
  const auto stream = device.make_stream();
  std::optional<ShardFile> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (holders[i].first != rank || parts[i].bytes == 0) continue;
    if (!out) out.emplace(path);
    const HostPart host(device, parts[i]);
    host.fetch(device, *stream);
    KeptRange range{parts[i].name,
                    std::string(name_of(parts[i].dtype)),
                    parts[i].shape,
                    parts[i].first,
                    parts[i].bytes,
                    out->align(),
                    {}};
    for (std::size_t at = 0; at < parts[i].bytes; at += piece_bytes) {
      const auto piece = host.bytes().subspan(at, std::min(piece_bytes, parts[i].bytes - at));
      out->write(piece);
      Checksum piece_sum(piece.size());
      piece_sum.add(piece);
      range.checksums.push_back(piece_sum.text());
    }
    sum += sum_of(parts[i], parts[i].first, host.bytes());
    shard.ranges.push_back(std::move(range));
  }
  if (out) out->sync(), shard.bytes = out->bytes();
  return shard;
}

// Throws if ranges of an array leave a gap or overlap: the ranks divide it wrongly.
void require_complete(const CheckpointIndex& index) {
  for (const auto& [name, ranges] : by_name(index)) {
    std::int64_t at = 0;
    const KeptRange& any = *ranges.front().second;
    const auto total = std::accumulate(any.shape.begin(), any.shape.end(), std::int64_t{1}, std::multiplies<>());
    const auto element = static_cast<std::int64_t>(size_of(*dtype_from(any.dtype)));
    for (const auto& [shard, range] : ranges) {
      ASSAY_CHECK(range->first == at, "{}: ranks hold it up to element {} and from {}", name, at, range->first);
      at += static_cast<std::int64_t>(range->bytes) / element;
    }
    ASSAY_CHECK(at == total, "{}: ranks hold {} of {} elements", name, at, total);
  }
}

}  // namespace

std::vector<Holders> holders_of(std::span<const nn::StatePart> parts, Communicator& comm) {
  std::vector<std::uint64_t> own;
  for (const nn::StatePart& part : parts) {
    const std::string range = fmt::format("{} {} {}", part.name, part.first, part.bytes);
    own.push_back(checksum(std::as_bytes(std::span(range))));
  }
  std::map<std::uint64_t, Holders> known;
  const auto* text = reinterpret_cast<const char*>(own.data());
  const auto all = gather_texts(comm, {text, own.size() * sizeof own[0]});
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (std::size_t at = 0; at < all[rank].size(); at += sizeof own[0]) {
      std::uint64_t each = 0;
      std::memcpy(&each, all[rank].data() + at, sizeof each);
      ++known.try_emplace(each, Holders{static_cast<int>(rank), 0}).first->second.count;
    }
  std::vector<Holders> holders;
  for (const std::uint64_t each : own) holders.push_back(known.at(each));
  return holders;
}

Transfer write_checkpoint(const fs::path& file, const CheckpointNotes& notes, std::span<const nn::StatePart> parts,
                          Device& device, Communicator& comm) {
  const auto start = Clock::now();
  const std::vector<Holders> holders = holders_of(parts, comm);
  Draft draft(file, comm);
  CheckpointIndex index;
  index.identity = notes.identity, index.layout = notes.layout, index.meta = notes.meta;
  index.slot = draft.slot(), index.pieces = piece_bytes;
  KeptShard own;
  std::uint64_t sum = 0;
  together(comm,
           [&] { own = write_shard(shard_file(file, index, comm.rank()), parts, holders, comm.rank(), device, sum); });
  index.checksum = fmt::format("{:016x}", total_of(comm, sum));
  Transfer transfer{0, 0, index.checksum};
  const std::vector<std::string> shards = gather_texts(comm, dump_line(json_of(own)));
  together(comm, [&] {
    if (comm.rank() != 0) return;
    for (const std::string& shard : shards) {
      index.shards.push_back(read_text<KeptShard>(shard));
      transfer.bytes += index.shards.back().bytes;
    }
    require_complete(index);
    require_shards(file, index);
    sync_folder(draft.folder());
    sync_folder(file.parent_path());
    const std::string text = index_text(index);
    replace_file(file, text);
    draft.keep();
    transfer.bytes += text.size();
    std::error_code ignored;  // the next write removes it
    fs::remove_all(slot_folder(file, index.slot == "a" ? "b" : "a"), ignored);
  });
  transfer.seconds = seconds_since(start);
  return transfer;
}

CheckpointNotes read_checkpoint(const fs::path& file, const CheckpointIdentity& identity,
                                std::span<const nn::StatePart> parts, Device& device, Communicator& comm,
                                Transfer* transfer) {
  const auto start = Clock::now();
  const std::vector<Holders> holders = holders_of(parts, comm);
  CheckpointIndex index;
  std::optional<ShardFiles> files;
  std::vector<std::vector<Source>> sources;
  std::uint64_t held = 0, kept = 0;  // elements, of all ranks and of the checkpoint
  std::uint64_t sum = 0;
  // Check everything before changing any part.
  together(comm, [&] {
    index = read_index(file);
    require_identity(file, index, identity);
    files.emplace(file, index);
    const Kept ranges = by_name(index);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      sources.push_back(sources_of(file, ranges, parts[i]));
      const bool own = holders[i].first == comm.rank();
      if (own) held += static_cast<std::uint64_t>(parts[i].count());
      for (const Source& source : sources.back()) {
        const std::uint64_t part = files->verify(parts[i], source);
        if (own) sum += part;
      }
    }
    for (const auto& [name, list] : ranges)
      for (const auto& [shard, range] : list)
        if (const auto dtype = dtype_from(range->dtype)) kept += range->bytes / size_of(*dtype);
  });
  held = total_of(comm, held);
  if (held != kept) refuse_checkpoint(file, fmt::format("is of another model: it has {} values, not {}", kept, held));
  const std::string found = fmt::format("{:016x}", total_of(comm, sum));
  if (!index.checksum.empty() && index.checksum != found)
    refuse_checkpoint(file, fmt::format("is damaged: its values have checksum {}, not {}", found, index.checksum));

  together(comm, [&] {
    const auto stream = device.make_stream();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const HostPart host(device, parts[i]);
      for (const Source& source : sources[i]) files->read(source, host.data());
      if (parts[i].bytes > 0) host.put(device, *stream);
    }
  });
  if (transfer) *transfer = {seconds_since(start), files->bytes_read(), found};
  return {index.identity, index.layout, index.meta};
}

}  // namespace assay::training
