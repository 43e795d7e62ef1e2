// Disks, file systems and mounts. A mount that does not answer must not hold the audit up: each is asked in a child
// process of its own, which is given up after a while.
#include "harness/audit/areas.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/process/ask.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>

namespace assay::audit {

namespace {

struct Mount {
  std::string source, place, type;
  std::vector<std::string> options;
  bool has(std::string_view option) const { return std::ranges::find(options, option) != options.end(); }
};

struct Space {
  std::uint64_t bytes = 0, free = 0, inodes = 0, free_inodes = 0;  // free: to ordinary users
};

// Blanks are written as \040 in these files.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// proc/mounts and etc/fstab have the same columns.
std::vector<Mount> read_mounts(const Root& root, std::string_view file) {
  std::vector<Mount> mounts;
  for (const std::string& line : lines(root.text(file).value_or(""))) {
    const auto columns = words(line);
    if (columns.size() < 4 || columns[0].starts_with("#")) continue;
    mounts.push_back({unescaped(columns[0]), unescaped(columns[1]), columns[2], split_commas(columns[3])});
  }
  return mounts;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> all) {
  return std::ranges::find(all, word) != all.end();
}
bool on_disk(const Mount& mount) { return one_of(mount.type, {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs"}); }
bool on_network(const Mount& mount) { return assay::on_network(mount.type); }

struct Answer {
  bool stuck = false;
  std::optional<Space> space;
};

// What statvfs says of each place, in the order given; stuck: it did not answer within `seconds`.
std::vector<Answer> ask_system(const std::vector<Mount>& mounts, double seconds) {
  std::vector<std::function<std::string()>> questions;
  for (const Mount& mount : mounts)
    questions.emplace_back([&mount] {
      struct statvfs found {};
      Space space;
      if (::statvfs(mount.place.c_str(), &found) == 0)
        space = {found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_favail};
      return std::string(reinterpret_cast<const char*>(&space), sizeof space);
    });
  std::vector<Answer> answers;
  for (const ChildAnswer& child : ask_children(questions, seconds)) {
    Space space;
    if (child.text) std::memcpy(&space, child.text->data(), sizeof space);
    answers.push_back({child.late, space.bytes > 0 ? std::optional(space) : std::nullopt});
  }
  return answers;
}

// statfs.json below a root that is not the machine's:
// {"/scratch": {"bytes": 1e12, "free": 5e11, "inodes": 1e6, "free_inodes": 5e5}, "/home": {"stuck": true}}
std::vector<Answer> ask_file(const Root& root, const std::vector<Mount>& mounts) {
  std::vector<Answer> answers(mounts.size());
  if (!root.exists("statfs.json")) return answers;
  const auto path = root.path() / "statfs.json";
  const Json json = read_json(path);
  assay::Problems problems(path.string());
  static const std::array<std::string, 5> names = {"bytes", "free", "inodes", "free_inodes", "stuck"};
  for (const auto& [place, entry] : Cursor(json, problems).members()) {
    if (!entry.object()) continue;
    entry.only(names);
    const auto count = [&entry = entry](const char* name) {
      const auto found = entry.find(name);
      return static_cast<std::uint64_t>(found ? found->number(0, 1e18).value_or(0) : 0);
    };
    Answer answer;
    if (const auto stuck = entry.find("stuck")) answer.stuck = stuck->flag().value_or(false);
    if (count("bytes") > 0) answer.space = Space{count("bytes"), count("free"), count("inodes"), count("free_inodes")};
    for (std::size_t i = 0; i < mounts.size(); ++i)
      if (mounts[i].place == place) answers[i] = answer;
  }
  problems.raise();
  return answers;
}

void judge_space(const Mount& mount, const Space& space, Report& report) {
  const auto free_of = [](std::uint64_t free, std::uint64_t all) {
    return static_cast<double>(free) / static_cast<double>(all);
  };
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  // Shared storage that is full is no fault of this host.
  const bool own = !on_network(mount);
  const double left = free_of(space.free, space.bytes);
  const auto seen = fmt::format("{} of {} free", format_bytes(static_cast<double>(space.free)),
                                format_bytes(static_cast<double>(space.bytes)));
  if (own && (left < 0.005 || space.free < 16 * mebibyte) && space.bytes > 64 * mebibyte)
    report.add("disk-full", mount.place, seen);
  else if (left < 0.05)
    report.add("disk-nearly-full", mount.place, seen);
  if (own && space.inodes > 0 && free_of(space.free_inodes, space.inodes) < 0.005)
    report.add("inodes-full", mount.place, fmt::format("{} of {} inodes free", space.free_inodes, space.inodes));
}

void audit_mounts(const Subject& subject, Report& report) {
  const auto& root = subject.root;
  auto mounts = read_mounts(root, "proc/mounts");
  const bool in_container = may_be_container(subject);
  // In a container, a file or folder of the host that is passed on read-only is meant so.
  const auto fstab = in_container ? std::vector<Mount>() : read_mounts(root, "etc/fstab");
  for (const Mount& wanted : fstab) {
    if (!wanted.place.starts_with("/") || (!on_disk(wanted) && !on_network(wanted))) continue;
    const auto now = std::ranges::find(mounts, wanted.place, &Mount::place);
    if (now == mounts.end()) {
      if (!wanted.has("noauto") && !wanted.has("x-systemd.automount") && !wanted.has("nofail"))
        report.add("mount-missing", wanted.place, wanted.source + " in /etc/fstab");
    } else if (now->has("ro") && !wanted.has("ro") && on_disk(*now)) {
      report.add("read-only", wanted.place, now->source + " is mounted ro");
    }
  }
  std::set<std::string> sources;
  std::erase_if(mounts, [&](const Mount& mount) {
    const bool memory = mount.type == "tmpfs" && one_of(mount.place, {"/tmp", "/dev/shm"});
    const bool container_root = mount.type == "overlay" && mount.place == "/";
    if (!on_disk(mount) && !on_network(mount) && !memory && !container_root) return true;
    return !memory && !sources.insert(mount.source).second;  // bound to several places
  });
  constexpr double max_seconds = 1.5;
  const auto answers = root.real() ? ask_system(mounts, max_seconds) : ask_file(root, mounts);
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (answers[i].stuck)
      report.add("mount-stuck", mounts[i].place,
                 mounts[i].source +
                     (root.real() ? fmt::format(" did not answer within {} s", max_seconds) : " does not answer"));
    // Read-only images are always full.
    else if (answers[i].space && !mounts[i].has("ro"))
      judge_space(mounts[i], *answers[i].space, report);
  }
  for (const Mount& mount : mounts)
    if (on_network(mount)) report.fact("mount " + mount.place, mount.type);
}

}  // namespace

void audit_storage(const Subject& subject, Report& report) {
  const auto& root = subject.root;
  audit_mounts(subject, report);
  for (const std::string& name : root.list("sys/class/nvme"))
    if (const auto state = root.text("sys/class/nvme/" + name + "/state");
        state && *state != "live" && *state != "new" && *state != "connecting")
      report.add("disk-lost", name, "state " + *state);
  std::string array;
  for (const std::string& line : lines(root.text("proc/mdstat").value_or(""))) {
    if (line.starts_with("md")) array = line.substr(0, line.find(' '));
    const auto open = line.rfind('['), close = line.rfind(']');
    if (array.empty() || open == line.npos || close == line.npos || close < open) continue;
    const auto state = line.substr(open + 1, close - open - 1);  // "UU_U"
    if (state.find_first_not_of("U_") == state.npos && state.find('_') != state.npos)
      report.add("raid-degraded", array, "[" + state + "]");
  }
}

}  // namespace assay::audit
