#include "workloads/data/generated_set.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/core/sha256.h"
#include "workloads/data/file.h"
#include "workloads/data/synthetic_image.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::data {

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t generator_seed = 1;
constexpr const char* manifest_name = "SHA256SUMS";

[[noreturn]] void broken(const fs::path& path, const char* what) {
  throw Error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

// Held by one process at a time; released with the descriptor, also if the process dies.
class Lock {
 public:
  explicit Lock(const fs::path& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
    if (fd_ < 0) broken(path, "cannot write to the cache of generated data");
    while (::flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) broken(path, "cannot lock");
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) broken(path, "cannot write");
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      ::close(fd);
      broken(path, "cannot write");
    }
    done += static_cast<std::size_t>(wrote);
  }
  const bool synced = ::fsync(fd) == 0;
  ::close(fd);
  if (!synced) broken(path, "cannot write");
}

Bytes read_whole(const fs::path& path) {
  const File file = File::open(path.string());
  Bytes bytes(file.bytes());
  file.read(bytes.data(), bytes.size(), 0);
  return bytes;
}

// Whether the manifest lists `files` files and each has its hash.
bool is_complete(const fs::path& set, std::size_t files) {
  try {
    const Bytes bytes = read_whole(set / manifest_name);
    const std::string manifest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::size_t lines = 0;
    for (std::size_t at = 0; at < manifest.size(); ++lines) {
      const std::size_t end = manifest.find('\n', at);
      if (end == std::string::npos || end < at + 67) return false;
      const std::string hash = manifest.substr(at, 64), name = manifest.substr(at + 66, end - at - 66);
      if (sha256_hex(read_whole(set / name)) != hash) return false;
      at = end + 1;
    }
    return lines == files;
  } catch (const Error&) {
    return false;
  }
}

struct NamedFile {
  std::string name;
  std::function<Bytes()> make;
};

// Calls fn(i) for i in [0, count) on `threads` threads; rethrows the first exception.
void for_each(std::size_t count, int threads, const std::function<void(std::size_t)>& fn) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i; (i = next++) < count;) fn(i);
    } catch (...) {
      const std::lock_guard guard(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> team;
  for (int t = 1; t < threads; ++t) team.emplace_back(work);
  work();
  for (std::thread& thread : team) thread.join();
  if (error) std::rethrow_exception(error);
}

GeneratedSet provide(const fs::path& cache_dir, const std::string& name, const std::vector<NamedFile>& files,
                     int threads, const char* published) {
  GeneratedSet result;
  std::error_code error;
  fs::create_directories(cache_dir, error);
  if (error)
    throw Error(fmt::format("{}: cannot create the cache of generated data: {}", cache_dir.string(), error.message()));
  const fs::path set = cache_dir / name;
  const Lock lock(cache_dir / (name + ".lock"));
  if (!is_complete(set, files.size())) {
    const Clock::time_point start = Clock::now();
    const fs::path fresh = cache_dir / (name + ".part");
    fs::remove_all(fresh, error);
    if (::mkdir(fresh.c_str(), 0777) != 0) broken(fresh, "cannot create");
    std::set<fs::path> folders;
    for (const NamedFile& file : files) folders.insert((fresh / file.name).parent_path());
    for (const fs::path& folder : folders) {
      fs::create_directories(folder, error);
      if (error) throw Error(fmt::format("{}: {}", folder.string(), error.message()));
    }
    std::vector<std::string> lines(files.size());
    for_each(files.size(), threads, [&](std::size_t i) {
      const Bytes bytes = files[i].make();
      write_file(fresh / files[i].name, bytes);
      lines[i] = fmt::format("{}  {}\n", sha256_hex(bytes), files[i].name);
    });
    std::string manifest;
    for (const std::string& line : lines) manifest += line;
    write_file(fresh / manifest_name, std::as_bytes(std::span(manifest)));
    fs::remove_all(set, error);
    fs::rename(fresh, set, error);
    if (error)
      throw Error(fmt::format("{}: cannot rename generated data into place: {}", set.string(), error.message()));
    result.generated_seconds = seconds_since(start);
  }
  result.path = set.string();
  result.sha256 = sha256_hex(read_whole(set / manifest_name));
  result.as_published = result.sha256 == published;
  return result;
}

}  // namespace

GeneratedSet generated_images(const fs::path& cache_dir, int count, int threads) {
  std::vector<NamedFile> files;
  for (int i = 0; i < count; ++i)
    files.push_back({fmt::format("class-{:02}/{:06}.jpg", i % synthetic_classes, i), [i] {
                       thread_local SyntheticImage image;
                       draw_synthetic_image(generator_seed, static_cast<std::uint64_t>(i), image);
                       return encode_jpeg(image);
                     }});
  return provide(cache_dir, fmt::format("images-v1-{}", count), files, threads,
                 count == default_images ? published_images_sha256 : "");
}

GeneratedSet generated_tokens(const fs::path& cache_dir, std::uint64_t count) {
  const auto make = [count] {
    const Rng rng(generator_seed, "synthetic tokens");
    Bytes bytes(count * 2);
    for (std::uint64_t i = 0; i < count; ++i) {
      // One number gives two tokens: each half is scaled to the vocabulary.
      const std::uint64_t bits = rng.u64(i / 2) >> (i % 2 * 32) & 0xffffffffu;
      const auto token = static_cast<std::uint16_t>(bits * token_vocabulary >> 32);
      bytes[i * 2] = static_cast<std::byte>(token & 255);
      bytes[i * 2 + 1] = static_cast<std::byte>(token >> 8);
    }
    return bytes;
  };
  return provide(cache_dir, fmt::format("tokens-v1-{}", count), {{"tokens.bin", make}}, 1,
                 count == default_tokens ? published_tokens_sha256 : "");
}

}  // namespace assay::data
