// Writes a run directory.
#include "harness/record/run_dir.h"

#include "harness/core/plain_text.h"
#include "harness/core/secrets.h"
#include "harness/core/text.h"
#include "harness/json/masked.h"
#include "harness/json/members.h"
#include "harness/record/content_hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t inline_samples = 200;

// Ignores what a run killed at its very start leaves: it has no run.json or record yet, and nothing to lose.
bool holds_anything(const fs::path& dir) {
  for (const auto& entry : fs::directory_iterator(dir))
    if (const fs::path name = entry.path().filename();
        name != ".lock" && !is_temporary(name) && (name != "records.jsonl" || !fs::is_empty(entry.path())))
      return true;
  return false;
}

// Cuts off a last line that a kill left incomplete; adds the newline if only that is missing.
void repair_end(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw Error(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  off_t end = info.st_size;
  std::string tail;
  while (end > 0 && tail.size() < max_line_bytes) {
    char block[4096];
    const auto size = static_cast<std::size_t>(std::min<off_t>(end, sizeof block));
    if (::pread(fd, block, size, end - static_cast<off_t>(size)) != static_cast<ssize_t>(size))
      throw Error(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    const std::string_view view(block, size);
    const std::size_t newline = view.rfind('\n');
    tail.insert(0, newline == view.npos ? view : view.substr(newline + 1));
    if (newline != view.npos) break;
    end -= static_cast<off_t>(size);
  }
  if (tail.empty()) return;
  bool whole = true;
  try {
    JsonPool pool;
    (void)Record::from_text(tail, pool);
  } catch (const Error&) {
    whole = false;
  }
  if (whole)
    write_all(fd, "\n", path);
  else if (::ftruncate(fd, info.st_size - static_cast<off_t>(tail.size())) != 0)
    throw Error(fmt::format("cannot cut {}: {}", path.string(), std::strerror(errno)));
}

// Opens a file of the run directory to append to it; -1 with errno. Links are not followed: others may have made them.
int open_own(const fs::path& path, int flags) {
  return ::open(path.c_str(), flags | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
}

Descriptor open_records(const fs::path& dir) {
  const fs::path path = dir / "records.jsonl";
  Descriptor fd(open_own(path, O_RDWR | O_NONBLOCK));
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
    throw UsageError(fmt::format("{} cannot be written: {}", path.string(),
                                 fd < 0 ? std::strerror(errno) : "it is no regular file"));
  return fd;
}

// Makes a folder of the run directory. Throws RunDirError.
void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return;
  const int error = errno;
  struct stat about {};
  if (error != EEXIST || ::lstat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode))
    throw RunDirError(fmt::format("cannot write {}: {}", folder.string(),
                                  error == EEXIST ? "it is no folder" : std::strerror(error)));
}

// Moves long sample lists into a separate file.
void spill_samples(const fs::path& dir, Record& record) {
  Samples& samples = record.samples;
  if (samples.values.size() <= inline_samples) return;
  const std::string name = fmt::format("series/{:016x}-{}.json", hash64(record.identity().text()), record.attempt);
  const SeriesFile file{record_schema,        record.key, record.attempt, samples.unit, std::move(samples.values),
                        std::move(samples.at)};
  make_folder(dir / "series");
  replace_file(dir / name, dump_line(masked(json_of(file))) + "\n");
  samples.series = name;
  samples.values.clear();
  samples.at.clear();
}

// The record's line; long sample lists go into a file of their own.
std::string line_of(const fs::path& dir, Record record) {
  record.samples.count = std::max(record.samples.count, static_cast<std::int64_t>(record.samples.values.size()));
  try {
    spill_samples(dir, record);
  } catch (const Error& caught) {
    throw RunDirError(caught.what());
  }
  return dump_line(masked(record.to_json())) + "\n";
}

std::string text_of_run(const Json& run) { return dump_document(run, 2); }

// Makes the directory of a new run unless it is there and empty; returns its whole path, and whether it was there.
std::pair<fs::path, bool> new_run_folder(const fs::path& dir) {
  const fs::path path = fs::absolute(dir).lexically_normal();
  std::error_code error;
  const bool existed = fs::exists(path, error);
  if (existed && !fs::is_directory(path, error))
    throw UsageError(fmt::format("{} is not a directory: give --out one that is absent or empty", dir.string()));
  fs::create_directories(path, error);
  if (error)
    throw Error(fmt::format("{} cannot be made: {}", dir.string(), error.message()),
                code_of_unwritten(error.message()));
  if (!existed) return {path, existed};
  // Check before making the lock, so that a foreign folder is left unchanged.
  if (fs::exists(path / "run.json", error))
    throw UsageError(fmt::format("{} holds a run already: continue it with --resume {}, or give another --out",
                                 dir.string(), dir.string()));
  try {
    if (holds_anything(path))
      throw UsageError(
          fmt::format("{} is not empty: give --out a directory that is absent or empty (--resume DIR "
                      "continues a run)",
                      dir.string()));
  } catch (const fs::filesystem_error& caught) {
    throw UsageError(fmt::format("{} cannot be read: {}", dir.string(), caught.code().message()));
  }
  return {path, existed};
}

// A new file of the run directory, written in large parts.
class NewPart {
 public:
  explicit NewPart(fs::path path) : path_(std::move(path)) {
    ::unlink(path_.c_str());  // what a killed run has left
    fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd_ < 0) fail(std::strerror(errno));
  }
  void write(std::string_view text) {
    constexpr std::size_t part = 1 << 20;
    pending_ += text;
    if (pending_.size() >= part) flush();
  }
  void close() {
    flush();
    if (!fd_.close()) fail(std::strerror(errno));
  }

 private:
  void flush() {
    try {
      write_all(fd_, pending_, path_);
    } catch (const Error& caught) {
      throw RunDirError(caught.what());
    }
    pending_.clear();
  }
  [[noreturn]] void fail(const char* why) const {
    throw RunDirError(fmt::format("cannot write {}: {}", path_.string(), why));
  }

  fs::path path_;
  Descriptor fd_;
  std::string pending_;
};

// The remains of a run that could not be written would be in the way of the next try.
void remove_leftovers(const fs::path& path, bool existed) {
  std::error_code none;
  for (const char* name : {"records.jsonl", "run.json", ".lock", "series"}) fs::remove_all(path / name, none);
  if (!existed) fs::remove(path, none);
}

}  // namespace

void write_run(const fs::path& dir, const std::function<Json(const std::function<void(Record)>& add)>& fill) {
  const auto [path, existed] = new_run_folder(dir);
  try {
    NewPart records(path / "records.jsonl");
    const Json run = fill([&, &folder = path](Record record) { records.write(line_of(folder, std::move(record))); });
    records.close();
    NewPart about(path / "run.json");
    about.write(text_of_run(run));
    about.close();
  } catch (...) {
    remove_leftovers(path, existed);
    throw;
  }
}

RunWriter::RunWriter(fs::path dir) : dir_(std::move(dir)) {}

RunWriter RunWriter::create(const fs::path& dir, const Json& run) {
  const auto [path, existed] = new_run_folder(dir);
  std::error_code error;
  RunWriter writer(path);
  try {
    writer.lock_ = RunLock(path);
  } catch (...) {
    if (!existed) fs::remove(path, error);
    throw;
  }
  if (holds_anything(path)) throw UsageError(fmt::format("{} holds a run already", dir.string()));
  try {
    writer.records_fd_ = open_records(path);
    writer.update_run(run);  // last: where it is, so are the records
  } catch (const Error& caught) {
    remove_leftovers(path, existed);
    throw Error(fmt::format("{} cannot hold a run: {}", dir.string(), caught.what()), code_of_unwritten(caught.what()));
  }
  return writer;
}

RunWriter RunWriter::resume(const fs::path& dir) {
  const fs::path path = fs::absolute(dir).lexically_normal();
  std::error_code error;
  if (!fs::exists(path / "run.json", error))
    throw UsageError(fmt::format("{} holds no run (no run.json): nothing to resume", dir.string()));
  RunWriter writer(path);
  writer.lock_ = RunLock(path);
  for (const fs::path& folder : {path, path / "series"}) remove_temporaries(folder);  // of a killed part of the run
  writer.records_fd_ = open_records(path);
  try {
    repair_end(writer.records_fd_, path / "records.jsonl");
  } catch (const Error& caught) {
    throw UsageError(caught.what());
  }
  return writer;
}

void RunWriter::append(Record record) {
  const fs::path path = dir_ / "records.jsonl";
  const std::string line = line_of(dir_, std::move(record));
  struct stat before {};
  if (::fstat(records_fd_, &before) != 0)
    throw RunDirError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  // A line written into a file that was moved or removed would be lost silently.
  struct stat named {};
  if (::stat(path.c_str(), &named) != 0 || named.st_ino != before.st_ino || named.st_dev != before.st_dev)
    throw RunDirError(
        fmt::format("{} is no longer there: it was moved or removed while the run went on", path.string()));
  try {
    write_all(records_fd_, line, path);
    if (::fsync(records_fd_) != 0) throw Error(fmt::format("cannot sync {}: {}", path.string(), std::strerror(errno)));
  } catch (const Error& caught) {
    // Remove half a line; if that fails too, the next resume does.
    if (::ftruncate(records_fd_, before.st_size) != 0) errno = 0;
    throw RunDirError(caught.what());
  }
}

void RunWriter::update_run(const Json& run) { replace_file(dir_ / "run.json", text_of_run(run)); }

void RunWriter::write_file(const std::string& name, std::string_view text, bool replace) {
  const bool plain = name.starts_with("mllog/") && name.size() > 6 && name.size() < 200 && name[6] != '.' &&
                     std::all_of(name.begin() + 6, name.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  if (!plain) throw Error(fmt::format("{} is no file that a worker may write", in_quotes(name)));
  const fs::path path = dir_ / name;
  make_folder(dir_ / "mllog");
  const Descriptor fd(open_own(path, O_WRONLY | O_NONBLOCK | (replace ? O_TRUNC : 0)));
  if (fd < 0) throw RunDirError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  try {
    write_all(fd, mask_secrets(text), path);
    if (::fsync(fd) != 0) throw Error(fmt::format("cannot sync {}: {}", path.string(), std::strerror(errno)));
  } catch (const Error& caught) {
    throw RunDirError(caught.what());
  }
}

}  // namespace assay
