#include "harness/core/trust.h"

#include "harness/core/error.h"
#include "harness/core/program.h"
#include "harness/core/text.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <optional>

namespace assay {

namespace fs = std::filesystem;

namespace {

struct Trusted {
  struct stat program {
  }, top{};
  Trusted() {
    if (::stat(program_file().c_str(), &program) != 0 || ::stat("/", &top) != 0) program = top = {};
  }
  bool owner(uid_t user) const { return user == 0 || user == program.st_uid || user == top.st_uid; }
  bool group(gid_t group) const { return group == 0 || group == program.st_gid; }
};

std::string shown(const fs::path& path) { return one_line(path.string(), PATH_MAX); }

// Why others could change this entry of a folder that they cannot change.
std::string why_open(const fs::path& path, const struct stat& about) {
  static const Trusted trusted;
  if (!trusted.owner(about.st_uid)) return fmt::format("{} belongs to user {}", shown(path), about.st_uid);
  const bool shared = S_ISLNK(about.st_mode) || (S_ISDIR(about.st_mode) && (about.st_mode & S_ISVTX) != 0);
  const bool group = (about.st_mode & S_IWGRP) != 0 && !trusted.group(about.st_gid);
  if (shared || !(group || (about.st_mode & S_IWOTH) != 0)) return {};
  return fmt::format("others may write to {}", shown(path));
}

}  // namespace

bool as_root() { return ::geteuid() == 0; }

std::string why_untrusted(const fs::path& path) {
  constexpr int max_links = 40;
  if (!as_root()) return {};
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  std::deque<fs::path> rest(absolute.begin(), absolute.end());
  fs::path seen = "/";
  for (int links = 0; !rest.empty();) {
    const fs::path name = std::move(rest.front());
    rest.pop_front();
    if (name == "..") seen = seen.parent_path();
    if (name.empty() || name == "." || name == "..") continue;
    const fs::path next = name.is_absolute() ? name : seen / name;
    struct stat about {};
    if (::lstat(next.c_str(), &about) != 0)
      return errno == ENOENT ? std::string() : fmt::format("{}: {}", shown(next), std::strerror(errno));
    if (std::string why = why_open(next, about); !why.empty()) return why;
    if (!S_ISLNK(about.st_mode)) {
      seen = next;
      continue;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > max_links) return fmt::format("{} cannot be followed", shown(next));
    rest.insert(rest.begin(), target.begin(), target.end());
  }
  return {};
}

void require_trusted(std::string_view what, const fs::path& path) {
  if (const std::string why = why_untrusted(path); !why.empty())
    throw UsageError(fmt::format("{}: {}, and root relies on nothing that others can change", what, why));
}

const fs::path& make_private(const fs::path& folder) {
  if (!as_root()) return folder;
  // Nothing is made in a place of somebody else; what somebody made there meanwhile is seen afterwards.
  std::string why = why_untrusted(folder);
  std::error_code error;
  if (why.empty()) {
    fs::create_directories(folder, error);
    why = error ? fmt::format("{}: {}", shown(folder), error.message()) : why_untrusted(folder);
  }
  struct stat about {};
  if (why.empty() && (::stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)))
    why = fmt::format("{} is no folder", shown(folder));
  if (why.empty() && (about.st_mode & S_IWOTH) != 0) why = fmt::format("others may write to {}", shown(folder));
  if (why.empty() && ::chmod(folder.c_str(), 0700) != 0)
    why = fmt::format("{}: {}", shown(folder), std::strerror(errno));
  if (!why.empty()) throw Error(why);
  return folder;
}

}  // namespace assay
