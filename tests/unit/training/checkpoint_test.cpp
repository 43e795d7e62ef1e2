// Checkpoints are bit-exact, complete or absent, and read by any number of ranks; others are refused with a clear
// message and change nothing.
#include "workloads/training/checkpoint.h"

#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

namespace assay::training {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct Array {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  bool divided;  // between the ranks

  std::int64_t count() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

// The arrays of a small model whose moments are divided among ranks; the last array spans several pieces of a file.
const std::vector<Array> arrays = {{"weights/a", DType::f32, {100, 10}, false}, {"weights/b", DType::bf16, {33}, true},
                                   {"moment1/a", DType::f32, {100, 10}, true},  {"moment1/b", DType::f64, {17}, true},
                                   {"scales", DType::i32, {3}, true},           {"step", DType::i64, {1}, false},
                                   {"moment2/c", DType::f32, {300, 4096}, true}};

// Bytes from `first` of an array's value in a state.
std::vector<std::byte> values(std::size_t array, std::size_t first, std::size_t count, int state) {
  std::vector<std::byte> bytes(count + first % 8 + 8);
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    const std::uint64_t key = (first / 8 + at / 8 + 1) * 64 + array + static_cast<std::uint64_t>(state) * 1'000'003;
    const std::uint64_t word = key * 0x9e3779b97f4a7c15ull;
    std::memcpy(bytes.data() + at, &word, 8);
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(first % 8));
  bytes.resize(count);
  return bytes;
}

// What rank `rank` of `ranks` holds. Ranks divide the flat row of all divided arrays unevenly, so that a rank may hold
// the end of one array and the whole of the next, or nothing of an array.
struct Held {
  Held(int rank, int ranks, int state) {
    std::int64_t whole = 0, passed = 0;
    for (const Array& array : arrays) whole += array.divided ? array.count() : 0;
    const auto edge = [&](int r) { return whole * r * r / (std::int64_t{ranks} * ranks); };
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      const Array& array = arrays[a];
      std::int64_t begin = 0, end = array.count();
      if (array.divided) {
        begin = std::clamp(edge(rank) - passed, std::int64_t{0}, end);
        end = std::clamp(edge(rank + 1) - passed, begin, end);
        passed += array.count();
        if (begin == end) continue;
      }
      const std::size_t element = size_of(array.dtype), first = static_cast<std::size_t>(begin) * element;
      std::vector<std::byte>& bytes =
          memory.emplace_back(values(a, first, static_cast<std::size_t>(end - begin) * element, state));
      parts.push_back({array.name, array.dtype, array.shape, bytes.data(), bytes.size(), begin});
    }
  }
  bool operator==(const Held& other) const { return memory == other.memory; }

  std::vector<nn::StatePart> parts;
  std::vector<std::vector<std::byte>> memory;
};

class CheckpointFile : public testing::Test {
 protected:
  // Returns the checksum.
  std::string save(int ranks, int state, const fs::path& file) {
    std::string checksum;
    test::run_ranks(ranks, [&](Communicator& comm) {
      const Held held(comm.rank(), ranks, state);
      const auto device = make_device(DeviceKind::cpu, 0);
      const Transfer transfer =
          write_checkpoint(file, {identity_, "a layout", {{"state", state}}}, held.parts, *device, comm);
      if (comm.rank() == 0) checksum = transfer.checksum;
    });
    return checksum;
  }
  std::string save(int ranks = 1, int state = 1) { return save(ranks, state, file_); }
  // Reads on that many ranks; expects this state.
  std::string load(int ranks, int state) {
    std::string checksum;
    test::run_ranks(ranks, [&](Communicator& comm) {
      Held held(comm.rank(), ranks, 99);
      const auto device = make_device(DeviceKind::cpu, 0);
      Transfer transfer;
      const CheckpointNotes notes = read_checkpoint(file_, identity_, held.parts, *device, comm, &transfer);
      EXPECT_TRUE(held == Held(comm.rank(), ranks, state)) << comm.rank() << " of " << ranks;
      EXPECT_EQ(notes.meta["state"].get<int>(), state);
      const auto bytes = std::accumulate(held.parts.begin(), held.parts.end(), std::uint64_t{0},
                                         [](std::uint64_t sum, const auto& part) { return sum + part.bytes; });
      // Whole pieces are checked: at each end of a range up to 4 MiB more than is needed.
      const bool pieces = read_index(file_).format == 2;
      EXPECT_LE(transfer.bytes, pieces ? bytes + (8u << 20) : fs::file_size(file_));
      if (comm.rank() == 0) checksum = transfer.checksum;
    });
    return checksum;
  }
  // Reading must change nothing and fail alike on all ranks.
  std::string refusal(const CheckpointIdentity& identity, int ranks = 1) {
    std::mutex mutex;
    std::set<std::string> messages;
    test::run_ranks(ranks, [&](Communicator& comm) {
      Held held(comm.rank(), ranks, 99);
      const auto device = make_device(DeviceKind::cpu, 0);
      const std::string message =
          test::refusal<Error>([&] { read_checkpoint(file_, identity, held.parts, *device, comm); });
      EXPECT_TRUE(held == Held(comm.rank(), ranks, 99)) << message;
      const std::lock_guard guard(mutex);
      messages.insert(message);
    });
    EXPECT_EQ(messages.size(), 1u);
    return *messages.begin();
  }
  std::string refusal() { return refusal(identity_); }

  static std::string read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void replace(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
  static void flip(const fs::path& file, std::size_t at) {
    std::string text = read(file);
    text[at] = static_cast<char>(text[at] ^ 0x04);
    replace(file, text);
  }
  // The names in the folder of checkpoints.
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(file_.parent_path())) names.insert(entry.path().filename());
    return names;
  }

  test::TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "checkpoints" / "a.ckpt";
  const fs::path shard_ = file_.string() + ".a/rank-0";
  const CheckpointIdentity identity_{"gpt2-tiny", "throughput", "f32", "adamw", "markov, 32 tokens", "4", "16"};
};

TEST_F(CheckpointFile, AnyNumberOfRanksReadsWhatAnyOtherWrote) {
  std::set<std::string> checksums;
  for (int writers = 1; writers <= 4; ++writers) {
    checksums.insert(save(writers));
    for (int readers = 1; readers <= 4; ++readers) checksums.insert(load(readers, 1));
  }
  EXPECT_EQ(checksums.size(), 1u) << "equal states have equal checksums";
  EXPECT_FALSE(checksums.contains(save(2, 2)));
}

TEST_F(CheckpointFile, TheNextTakesThePlaceOfTheLast) {
  for (int state = 1; state <= 3; ++state) {
    save(3, state);
    const std::string folder = state % 2 == 1 ? "a.ckpt.a" : "a.ckpt.b";
    EXPECT_THAT(names(), testing::UnorderedElementsAre("a.ckpt", folder));
    load(1, state);
  }
}

TEST_F(CheckpointFile, ARangeIsWrittenOnce) {
  save(2);
  std::uintmax_t bytes = 0, held = 0;
  for (const auto& entry : fs::directory_iterator(shard_.parent_path())) bytes += entry.file_size();
  for (const Array& array : arrays) held += static_cast<std::uintmax_t>(array.count()) * size_of(array.dtype);
  EXPECT_GE(bytes, held);
  EXPECT_LE(bytes, held + 2 * arrays.size() * 4096);
}

TEST_F(CheckpointFile, RanksThatDivideAnArrayWronglyAreRefused) {
  test::run_ranks(2, [&](Communicator& comm) {
    std::vector<float> values(60);
    const std::int64_t first = comm.rank() == 0 ? 0 : 50;  // elements 60 to 99 by nobody
    const nn::StatePart part{"weights/a", DType::f32, {110}, values.data(), values.size() * 4, first};
    const auto device = make_device(DeviceKind::cpu, 0);
    EXPECT_THAT(test::refusal<Error>([&] {
                  write_checkpoint(file_, {identity_, "", {}}, std::span(&part, 1), *device, comm);
                }),
                HasSubstr("weights/a: ranks hold it up to element 60 and from 50"));
  });
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(CheckpointFile, EveryTruncationIsRefused) {
  save();
  const std::string index = read(file_);
  for (std::size_t length = 0; length < index.size(); length += 37) {
    replace(file_, index.substr(0, length));
    EXPECT_THAT(refusal(), testing::AnyOf(HasSubstr("truncated"), HasSubstr("is empty"))) << length;
  }
  replace(file_, index);
  const std::string shard = read(shard_);
  for (const std::size_t length : {std::size_t{0}, std::size_t{4100}, shard.size() - 1}) {
    replace(shard_, shard.substr(0, length));
    EXPECT_THAT(refusal(), HasSubstr("truncated (in ")) << length;
    EXPECT_THAT(test::refusal<Error>([&] { require_shards(file_, read_index(file_)); }),
                HasSubstr(fmt::format("is truncated: {} has {} of {} bytes", shard_.string(), length, shard.size())));
  }
}

TEST_F(CheckpointFile, AFlippedBitIsFoundAndItsPartNamed) {
  const auto flipped = [&](int rank, std::size_t from_end) {
    save(2);
    const fs::path path = rank < 0 ? file_ : shard_file(file_, read_index(file_), rank);
    flip(path, fs::file_size(path) - from_end);
    const std::string message = refusal(identity_, 3);
    fs::remove_all(file_.parent_path());
    return message;
  };
  EXPECT_THAT(flipped(-1, 40), AllOf(HasSubstr("rank 0: "), HasSubstr("is damaged (its header)")));
  EXPECT_THAT(flipped(0, 1), HasSubstr("is damaged (in moment2/c)"));
  EXPECT_THAT(flipped(1, 1), HasSubstr("is damaged (in moment2/c)"));
  EXPECT_THAT(flipped(0, fs::file_size((save(2), shard_)) - 100), HasSubstr("is damaged (in weights/a)"));
}

TEST_F(CheckpointFile, AMissingShardIsNamed) {
  save();
  fs::remove(shard_);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("lacks its file " + shard_.string()), HasSubstr("No such file")));
  EXPECT_THAT(test::refusal<Error>([&] { require_shards(file_, read_index(file_)); }), HasSubstr("No such file"));
}

TEST_F(CheckpointFile, OtherFilesAreRefused) {
  save();
  const std::string index = read(file_);
  replace(file_, std::string(5000, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("is not an Assay checkpoint"));
  std::string newer = index;
  newer[8] = 9;
  replace(file_, newer);
  EXPECT_THAT(refusal(), HasSubstr("has format 9; this build reads 1 to 2"));
  fs::remove(file_);
  EXPECT_THAT(refusal(), HasSubstr("cannot be opened: No such file"));
  fs::create_directory(file_);
  EXPECT_THAT(refusal(), HasSubstr("is a folder"));
}

TEST_F(CheckpointFile, OfAnotherIdentityIsRefused) {
  save();
  const auto with = [&](auto member, const char* value) {
    CheckpointIdentity other = identity_;
    other.*member = value;
    return refusal(other);
  };
  using Id = CheckpointIdentity;
  EXPECT_THAT(with(&Id::model, "llama-tiny"), HasSubstr("another model: \"gpt2-tiny\", not \"llama-tiny\""));
  EXPECT_THAT(with(&Id::mode, "quality"), HasSubstr("another mode"));
  EXPECT_THAT(with(&Id::precision, "bf16"), HasSubstr("another precision"));
  EXPECT_THAT(with(&Id::optimizer, "sgd"), HasSubstr("another optimizer"));
  EXPECT_THAT(with(&Id::data, "files, 32 tokens"), HasSubstr("other data: "));
  EXPECT_THAT(with(&Id::seed, "5"), HasSubstr("another seed"));
  EXPECT_THAT(with(&Id::global_batch, "32"), HasSubstr("another global batch: \"16\", not \"32\"; scaling=strong"));
}

TEST_F(CheckpointFile, OfOtherArraysIsRefused) {
  save();
  const auto refused = [&](const std::function<void(std::vector<nn::StatePart>&)>& change) {
    std::string message;
    test::run_ranks(1, [&](Communicator& comm) {
      Held held(0, 1, 99);
      change(held.parts);
      const auto device = make_device(DeviceKind::cpu, 0);
      message = test::refusal<Error>([&] { read_checkpoint(file_, identity_, held.parts, *device, comm); });
      EXPECT_TRUE(held == Held(0, 1, 99));
    });
    return message;
  };
  EXPECT_THAT(refused([](auto& parts) {
                parts[0].shape = {10, 100};
              }),
              HasSubstr("weights/a is \"f32\" (100, 10), not \"f32\" (10, 100)"));
  EXPECT_THAT(refused([](auto& parts) { parts[0].name = "weights/x"; }), HasSubstr("it has no weights/x"));
  EXPECT_THAT(refused([](auto& parts) { parts.pop_back(); }), HasSubstr("values, not"));
}

// One rank's disk is full, as far as it can tell: the others' ranges are smaller than the limit.
TEST_F(CheckpointFile, IfARankCannotWriteAllSaySoAndTheEarlierOneStays) {
  const std::string before = save(2);
  const std::set<std::string> there = names();
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 2 << 20;  // rank 0 of 2 holds a quarter of 4.9 MB
  setrlimit(RLIMIT_FSIZE, &small);
  std::mutex mutex;
  std::set<std::string> messages;
  test::run_ranks(2, [&](Communicator& comm) {
    const Held held(comm.rank(), 2, 2);
    const auto device = make_device(DeviceKind::cpu, 0);
    const std::string message = test::refusal<Error>([&] {
      write_checkpoint(file_, {identity_, "", {}}, held.parts, *device, comm);
    });
    const std::lock_guard guard(mutex);
    messages.insert(message);
  });
  const auto write_large_index = [&] {
    test::run_ranks(1, [&](Communicator& comm) {
      const Held held(0, 1, 2);
      const auto device = make_device(DeviceKind::cpu, 0);
      write_checkpoint(file_, {identity_, "", {{"notes", std::string(9 << 20, 'x')}}}, held.parts, *device, comm);
    });
  };
  small.rlim_cur = 8 << 20;  // enough for the arrays, not for the index
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_large_index(), Error);
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_THAT(messages, testing::ElementsAre(AllOf(HasSubstr("rank 1: cannot write "), HasSubstr(".ckpt.b/rank-1"),
                                                   HasSubstr("File too large"))));
  EXPECT_EQ(names(), there);
  EXPECT_EQ(load(3, 1), before);
}

// A process that saves one state after another is killed at any moment: what it leaves is one whole state.
TEST_F(CheckpointFile, KilledAtAnyMomentItIsComplete) {
  save(1, 0);
  std::mt19937 random(7);
  const auto saved = [&] { return read_index(file_).meta["state"].get<int>(); };
  for (int kill = 0; kill < 25; ++kill) {
    const int before = saved();
    const pid_t child = fork();
    if (child == 0) {
      const auto device = make_device(DeviceKind::cpu, 0);
      const auto comm = make_self_communicator();
      for (int state = before + 1;; ++state)
        write_checkpoint(file_, {identity_, "", {{"state", state}}}, Held(0, 1, state).parts, *device, *comm);
    }
    while (saved() == before) usleep(1000);
    usleep(std::uniform_int_distribution<unsigned>(0, 40000)(random));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    load(2, saved());
  }
  save(2, 1);
  EXPECT_EQ(names().size(), 2u) << "leftovers of the killed are removed";
}

// As builds before format 2 wrote it.
std::string format_1(const std::string& key, const std::vector<nn::StatePart>& parts) {
  Json header = {{"model", "gpt2-tiny"}, {"precision", "f32"}, {"key", key}, {"meta", {{"state", 1}}}};
  std::string data;
  for (const nn::StatePart& part : parts) {
    data.resize((data.size() + 4095) / 4096 * 4096);
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(part.data), part.bytes);
    header["parts"].push_back({{"name", part.name},
                               {"dtype", name_of(part.dtype)},
                               {"shape", part.shape},
                               {"bytes", part.bytes},
                               {"offset", data.size()},
                               {"checksum", fmt::format("{:016x}", checksum(bytes))}});
    data.append(static_cast<const char*>(part.data), part.bytes);
  }
  const std::string text = header.dump();
  const std::uint32_t version = 1, length = static_cast<std::uint32_t>(text.size());
  const std::uint64_t sum = checksum(std::as_bytes(std::span(text)));
  std::string file = "ASSAYCKP";
  file.append(reinterpret_cast<const char*>(&version), 4).append(reinterpret_cast<const char*>(&length), 4);
  file.append(reinterpret_cast<const char*>(&sum), 8).append(text);
  file.resize((file.size() + 4095) / 4096 * 4096);
  return file + data;
}

constexpr const char* first_key =
    "transformer/model=gpt2-tiny/mode=throughput/precision=f32/micro_batch=4/accumulate=2/seq=32/scaling=weak/"
    "threads=1/path=generated/save_every=5/runs=5/seed=1 ranks=2 seed=3";

TEST_F(CheckpointFile, Format1IsReadOnAnyNumberOfRanks) {
  const std::string checksum = save();
  fs::remove_all(file_.parent_path());
  fs::create_directory(file_.parent_path());
  replace(file_, format_1(first_key, Held(0, 1, 1).parts));
  for (int ranks = 1; ranks <= 3; ++ranks) EXPECT_EQ(load(ranks, 1), checksum);
  const CheckpointIdentity found = read_index(file_).identity;
  EXPECT_EQ(found.mode, "throughput");
  EXPECT_EQ(found.seed, "4");
  EXPECT_EQ(found.global_batch, "16");
  EXPECT_EQ(found.data, "") << "not recorded";
  save(2, 2);  // in its place
  load(1, 2);
}

TEST_F(CheckpointFile, Format1IsRefusedAsFormat2Is) {
  fs::create_directory(file_.parent_path());
  const std::string whole = format_1(first_key, Held(0, 1, 1).parts);
  for (std::size_t length = 0; length < whole.size(); length += length < 4000 ? 97 : 499979) {
    replace(file_, whole.substr(0, length));
    EXPECT_THAT(refusal(), testing::AnyOf(HasSubstr("truncated"), HasSubstr("is empty"))) << length;
  }
  replace(file_, whole);
  flip(file_, whole.size() - 1);
  EXPECT_THAT(refusal(), HasSubstr("is damaged (in moment2/c)"));
  std::string other = first_key;
  replace(file_, format_1(other.replace(other.find("weak"), 4, "strong"), Held(0, 1, 1).parts));
  EXPECT_THAT(refusal(), HasSubstr("another global batch: \"8\", not \"16\""));
}

TEST(Checksum, DependsOnLengthAndEveryBit) {
  std::vector<std::byte> data(1000, std::byte{0});
  const std::uint64_t zeros = checksum(data);
  EXPECT_NE(zeros, checksum(std::span(data).first(999)));
  for (const std::size_t at : {0u, 7u, 8u, 63u, 64u, 511u, 999u})
    for (int bit = 0; bit < 8; ++bit) {
      data[at] = std::byte{static_cast<unsigned char>(1 << bit)};
      EXPECT_NE(checksum(data), zeros) << at;
      data[at] = std::byte{0};
    }
}

}  // namespace
}  // namespace assay::training
