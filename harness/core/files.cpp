#include "harness/core/files.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 16;
constexpr auto reader_patience = std::chrono::seconds(5);

[[noreturn]] void failed(const char* action, const fs::path& path, const std::string& why) {
  throw Error(fmt::format("cannot {} {}: {}", action, one_line(path.string(), PATH_MAX), why));
}

[[noreturn]] void failed(const char* action, const fs::path& path, int error) {
  failed(action, path, std::strerror(error));
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISBLK(mode)  ? "a disk"
         : S_ISCHR(mode)  ? "a device"
                          : "a link of another user";
}

bool lies_on(int fd, long file_system) {
  struct statfs about {};
  return ::fstatfs(fd, &about) == 0 && static_cast<std::uint32_t>(about.f_type) == file_system;
}

constexpr long proc_file_system = 0x9fa0, pipe_file_system = 0x50495045;  // see statfs(2)

// The file at the end of a chain of links.
struct Place {
  std::optional<struct stat> about;  // absent if nothing is there
  bool open_already = false;         // a link of /proc to what a process has open, which may have no name
};

// Follows `path` while it is a link that may be followed. Each link is looked at and read through one descriptor, so
// that nobody can change it in between.
Place follow_links(fs::path& path) {
  constexpr int max_links = 40;
  const fs::path given = path;
  for (int i = 0; i < max_links; ++i) {
    const Descriptor node(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (node < 0 && errno == ENOENT) return {};
    Place place;
    place.about.emplace();
    if (node < 0 || ::fstat(node, &*place.about) != 0) failed("write", given, errno);
    if (!S_ISLNK(place.about->st_mode)) return place;
    if (lies_on(node, proc_file_system)) {
      place.open_already = true;
      if (::stat(path.c_str(), &*place.about) != 0) failed("write", given, errno);
      return place;
    }
    if (place.about->st_uid != 0 && place.about->st_uid != ::geteuid()) return place;
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(node, "", target, sizeof target);
    if (length < 0) failed("write", given, errno);
    path = path.parent_path() / std::string_view(target, static_cast<std::size_t>(length));
  }
  failed("write", given, ELOOP);
}

bool is_same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// A copy of the descriptor that /proc/self/fd/N names: it shares the offset with the original, as a shell's >> needs.
Descriptor open_descriptor(const fs::path& path, const struct stat& about) {
  const std::string name = path.filename().string();
  int number = -1;
  struct stat own {};
  const bool read = std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc();
  if (!read || ::fstat(number, &own) != 0 || !is_same(own, about))
    failed("write", path, "it is what another process has open");
  return Descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 3));
}

Descriptor open_socket(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) failed("write", path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    failed("write", path, errno);
  return fd;
}

// A device, FIFO or socket as it is.
Descriptor open_special(const fs::path& path, const struct stat& about) {
  if (S_ISDIR(about.st_mode) || S_ISBLK(about.st_mode))
    failed("write", path, fmt::format("it is {}", kind_of(about.st_mode)));
  if (S_ISSOCK(about.st_mode)) return open_socket(path);
  // With O_NONBLOCK, opening a FIFO that nobody reads fails instead of waiting for ever.
  const auto open = [&] { return Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)); };
  const auto deadline = std::chrono::steady_clock::now() + reader_patience;
  Descriptor fd = open();
  while (fd < 0 && errno == ENXIO && S_ISFIFO(about.st_mode) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fd = open();
  }
  if (fd < 0 && errno == ENXIO && S_ISFIFO(about.st_mode)) failed("write", path, "nobody reads this FIFO");
  struct stat opened {};
  if (fd < 0 || ::fstat(fd, &opened) != 0) failed("write", path, errno);
  if (!is_same(opened, about)) failed("write", path, "it was replaced meanwhile");
  ::fcntl(fd, F_SETFL, 0);
  return fd;
}

}  // namespace

Descriptor::~Descriptor() { close(); }

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

bool Descriptor::close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

void ignore_file_size_signal() {
  static const bool done = [] {
    std::signal(SIGXFSZ, SIG_IGN);
    return true;
  }();
  (void)done;
}

void write_all(int fd, std::string_view text, const fs::path& path) {
  ignore_file_size_signal();
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      failed("write", path, errno);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_folder(const fs::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) failed("open", folder, errno);
  // Some file systems cannot sync a folder (EINVAL).
  if (::fsync(fd) != 0 && errno != EINVAL) failed("sync", folder, errno);
}

void sync_file_system(const fs::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd < 0) failed("open", path, errno);
  if (::syncfs(fd) != 0) failed("sync", path, errno);
}

Descriptor create_temporary(const fs::path& folder, fs::path& path) {
  for (std::random_device random;;) {
    path = folder / fmt::format(".assay-{:08x}{:08x}.tmp", random(), random());
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return fd;
    // Another process may remove it as a leftover until it is locked.
    const bool lost = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!lost && ::access(path.c_str(), F_OK) == 0) return fd;
  }
}

bool is_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(".assay-") && name.ends_with(".tmp");
}

void remove_temporaries(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_temporary(entry->path())) {
      const Descriptor fd(::open(entry->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    }
}

TemporaryFolder::TemporaryFolder(const fs::path& start) {
  std::string name = start.string() + "-XXXXXX";
  if (!::mkdtemp(name.data())) failed("create", name, errno);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

NewFile::NewFile(const fs::path& path) : name_(path), target_(path) {
  const Place place = follow_links(target_);
  if (place.about && place.open_already)
    fd_ = open_descriptor(target_, *place.about);
  else if (place.about && !S_ISREG(place.about->st_mode) && !S_ISLNK(place.about->st_mode))
    fd_ = open_special(target_, *place.about);
  else
    fd_ = create_temporary(folder_of(target_), temporary_);
  if (fd_ < 0) failed("create", name_, errno);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::write(std::string_view text) {
  constexpr std::size_t enough = std::size_t{1} << 20;
  if (pending_.size() + text.size() >= enough) {
    flush();
    write_all(fd_, text, name_);
  } else {
    pending_ += text;
  }
}

void NewFile::flush() { write_all(fd_, std::exchange(pending_, {}), name_); }

void NewFile::finish(bool durable) {
  flush();
  if (durable && !temporary_.empty() && ::fsync(fd_) != 0) failed("sync", name_, errno);
  // The copy holds the lock until the file has its name.
  const Descriptor lock(temporary_.empty() ? -1 : ::fcntl(fd_, F_DUPFD_CLOEXEC, 0));
  if (!fd_.close()) failed("write", name_, errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) failed("replace", name_, errno);
  temporary_.clear();
  if (durable) sync_folder(folder_of(target_));
}

void replace_file(const fs::path& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.finish();
}

Descriptor open_to_read(const fs::path& path, struct stat& about, Pipes pipes) {
  // Looked at before it is opened, as opening a device may do something. With O_NONBLOCK, a FIFO that takes its place
  // meanwhile does not wait for a writer.
  if (::stat(path.c_str(), &about) != 0) failed("read", path, errno);
  const auto fits = [&] { return S_ISREG(about.st_mode) || (pipes == Pipes::read && S_ISFIFO(about.st_mode)); };
  Descriptor fd(fits() ? ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1);
  if (fits() && (fd < 0 || ::fstat(fd, &about) != 0)) failed("read", path, errno);
  // A FIFO with a name might never get a writer; a pipe has one.
  if (!fits() || (S_ISFIFO(about.st_mode) && !lies_on(fd, pipe_file_system)))
    failed("read", path, fmt::format("it is {}, not a file", kind_of(about.st_mode)));
  ::fcntl(fd, F_SETFL, 0);
  return fd;
}

std::string read_whole(const fs::path& path, std::uintmax_t limit, Pipes pipes) {
  struct stat about {};
  const Descriptor fd = open_to_read(path, about, pipes);
  const auto check = [&](std::uintmax_t bytes) {
    if (bytes > limit) failed("read", path, fmt::format("longer than {} bytes", limit));
  };
  check(static_cast<std::uintmax_t>(about.st_size));
  std::string text;
  char block[block_bytes];
  for (;;) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed("read", path, errno);
    if (got == 0) return text;
    text.append(block, static_cast<std::size_t>(got));
    check(text.size());  // it may grow, and a pipe has no size
  }
}

std::function<bool(std::string& text)> parts_of(const fs::path& path, Pipes pipes) {
  struct stat about {};
  const auto fd = std::make_shared<Descriptor>(open_to_read(path, about, pipes));
  return [fd, path](std::string& text) {
    constexpr std::size_t part_bytes = std::size_t{1} << 20;
    const std::size_t had = text.size();
    text.resize(had + part_bytes);
    ssize_t got = 0;
    while ((got = ::read(*fd, text.data() + had, part_bytes)) < 0 && errno == EINTR) continue;
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) failed("read", path, errno);
    return got > 0;
  };
}

LineReader::LineReader(const fs::path& path, std::size_t max_line_bytes)
    : path_(path), max_line_bytes_(max_line_bytes) {
  struct stat about {};
  fd_ = open_to_read(path, about);
}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (ended_ = false; !ended_;) {
    if (at_ == block_.size()) {
      block_.resize(block_bytes);
      ssize_t got = 0;
      do got = ::read(fd_, block_.data(), block_.size());
      while (got < 0 && errno == EINTR);
      if (got < 0) failed("read", path_, errno);
      block_.resize(static_cast<std::size_t>(got));
      at_ = 0;
      if (got == 0) return !line.empty();
    }
    const std::size_t end = std::min(block_.find('\n', at_), block_.size());
    line.append(block_, at_, end - at_);
    if (line.size() > max_line_bytes_)
      failed("read", path_, fmt::format("line {} is longer than {} bytes", number_, max_line_bytes_));
    ended_ = end < block_.size();
    at_ = end + (ended_ ? 1 : 0);
  }
  return true;
}

}  // namespace assay
