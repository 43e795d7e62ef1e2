// Files by plain system calls, so that every error has a reason: read whole or by lines, and replaced at once.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace assay {

// Owns a descriptor, or none (-1).
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  operator int() const { return fd_; }
  // Closes it now. False with errno if what was written is lost.
  bool close();

 private:
  int fd_;
};

// Writes the whole text, or throws Error naming path and reason; a full disk is an error, not a signal.
void write_all(int fd, std::string_view text, const std::filesystem::path& path);
// Ignores the signal that the kernel sends when a file exceeds RLIMIT_FSIZE, so that writing reports an error instead.
void ignore_file_size_signal();

// Makes a new file with a random name in the folder, for writing; it never opens a file that is already there. It is
// locked (flock) while it is open. `path` becomes its path; -1 with errno if there can be none.
Descriptor create_temporary(const std::filesystem::path& folder, std::filesystem::path& path);
// Whether the name is of the form that create_temporary() makes; a killed process may leave such a file behind.
bool is_temporary(const std::filesystem::path& path);
// Removes temporary files that no process has locked any more. Does nothing if the folder does not exist.
void remove_temporaries(const std::filesystem::path& folder);

// A new folder that only this user can open. Its path is `start`, a dash and random characters; the destructor removes
// it with its contents.
class TemporaryFolder {
 public:
  // Throws Error.
  explicit TemporaryFolder(const std::filesystem::path& start);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Replaces a file: readers, and other processes that write it at the same time, see the old file or the whole new one.
// - A link is followed if this user or root has made it; any other link is replaced, as a file is.
// - A path that is no regular file is written to directly: a device, a FIFO (it waits 5 s for a reader), a socket, and
//   this process's own /dev/fd/N or /dev/stdout. A folder, a disk, and descriptors of other processes are refused.
class NewFile {
 public:
  // Throws Error if the file cannot be made; nothing is changed then.
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();  // removes the new file unless finish() was called
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Throws Error if writing fails, for example because the disk is full.
  void write(std::string_view text);
  // Puts the file in its place, and on the disk unless it need not be `durable`. Throws Error.
  void finish(bool durable = true);

 private:
  void flush();

  std::filesystem::path name_, target_,
      temporary_;  // as given, where links lead, where it is written (if not directly)
  Descriptor fd_;
  std::string pending_;
};

// Writes the whole text by a NewFile.
void replace_file(const std::filesystem::path& path, std::string_view text);
// Makes all that was written to the file system of this path durable.
void sync_file_system(const std::filesystem::path& path);
// Makes a new or renamed entry of the folder durable.
void sync_folder(const std::filesystem::path& folder);

// Whether a file may also be a pipe that this process has open, as /dev/stdin or a shell's <(...) are.
enum class Pipes { refused, read };

// Opens a regular file for reading; `about` is what it is. Throws Error, also for a folder, a FIFO, a device or a link
// to one, without opening or waiting for it.
Descriptor open_to_read(const std::filesystem::path& path, struct stat& about, Pipes pipes = Pipes::refused);
// A whole file; throws Error if it cannot be read or is longer than `limit` bytes, which is seen before it is read.
std::string read_whole(const std::filesystem::path& path, std::uintmax_t limit, Pipes pipes = Pipes::refused);
// A file that may be too long to be read whole: each call of the result appends up to 1 MiB to `text`, and returns
// false at the end. Both throw Error if it cannot be read.
std::function<bool(std::string& text)> parts_of(const std::filesystem::path& path, Pipes pipes = Pipes::refused);

// The lines of a regular file, one by one.
class LineReader {
 public:
  // Throws Error as open_to_read() does.
  LineReader(const std::filesystem::path& path, std::size_t max_line_bytes);
  // False after the last line. Throws Error if the file cannot be read, and for a longer line, of which no more is
  // read.
  bool next(std::string& line);
  // Whether the last line that next() gave ended with a newline.
  bool ended() const { return ended_; }

 private:
  std::filesystem::path path_;
  std::size_t max_line_bytes_;
  Descriptor fd_;
  std::string block_;
  std::size_t at_ = 0;  // in the block
  std::size_t number_ = 0;
  bool ended_ = true;
};

}  // namespace assay
