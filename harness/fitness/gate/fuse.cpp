#include "harness/fitness/gate/fuse.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/trust.h"
#include "harness/core/utc.h"
#include "harness/json/members.h"
#include "harness/process/ask.h"
#include "harness/run/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <system_error>

namespace assay::gate {

namespace fs = std::filesystem;

namespace {

constexpr std::time_t forgotten_after = 30 * 86400;  // a host whose gates no longer ask
constexpr std::uintmax_t max_fuse_bytes = std::uintmax_t{64} << 20;
constexpr double reset_seconds = 10;

// DIR/fuse.json. Times are Unix seconds.
struct FuseFile {
  std::map<std::string, double> hosts, drains;  // when a host's gate last asked, and when it was drained
  std::optional<double> blown;
  std::string by;
  std::size_t counted = 0;  // drains, when it blew

  static void members(auto& self, auto& io) {
    io("hosts", self.hosts), io("drains", self.drains), io("blown", self.blown), io("by", self.by);
    io("counted", self.counted);
  }
};

// Changes the file while no other process does.
FuseAnswer with_file(const fs::path& folder, const std::function<FuseAnswer(FuseFile&)>& change) {
  make_private(folder);
  const fs::path lock_file = folder / "fuse.lock", file = folder / "fuse.json";
  const Descriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (lock < 0 || ::flock(lock, LOCK_EX) != 0)
    throw Error(fmt::format("{}: {}", lock_file.string(), std::strerror(errno)));
  if (const std::string why = why_untrusted(file); !why.empty()) throw Error(why);
  FuseFile state;
  std::error_code none;
  if (fs::exists(fs::symlink_status(file, none))) try {
      state = read_value<FuseFile>(parse_untrusted(read_whole(file, max_fuse_bytes)));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", file.string(), error.what()));
    }
  FuseAnswer answer = change(state);
  replace_file(file, dump_line(json_of(state)));
  return answer;
}

FuseAnswer answer_of(const FuseFile& state, const AtMost& most) {
  FuseAnswer answer;
  answer.hosts = most.fleet > 0 ? most.fleet : state.hosts.size();
  answer.allowed = most.count;
  if (most.share)
    answer.allowed = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::floor(*most.share * static_cast<double>(answer.hosts) + 1e-9)));
  answer.blown = state.blown.has_value();
  answer.drains = answer.blown ? state.counted : state.drains.size();
  answer.by = state.by;
  if (state.blown) answer.since = utc_text(static_cast<std::time_t>(*state.blown));
  return answer;
}

// In a child, which may hang on the folder. Throws Error for what it says.
FuseAnswer asked(const fs::path& folder, double seconds, const std::function<FuseAnswer(FuseFile&)>& change) {
  const ChildAnswer child = ask_child([&] { return dump_line(json_of(with_file(folder, change))); }, seconds);
  if (!child.text) throw Error(fmt::format("{}: {}", folder.string(), child.problem));
  return read_text<FuseAnswer>(*child.text);
}

}  // namespace

fs::path folder_of(const AtMost& most) { return most.shared.empty() ? cache_folder() / "gate" : most.shared; }

FuseAnswer ask_fuse(const AtMost& most, const std::string& host, std::time_t now, bool drain, double seconds) {
  const auto moment = static_cast<double>(now);
  const auto change = [&](FuseFile& state) {
    std::erase_if(state.hosts, [&](const auto& one) { return one.second < moment - forgotten_after; });
    std::erase_if(state.drains, [&](const auto& one) { return one.second < moment - most.within_seconds; });
    state.hosts[host] = moment;
    FuseAnswer answer = answer_of(state, most);
    if (!drain || state.blown || state.drains.contains(host)) return answer;
    if (answer.drains < answer.allowed) {
      state.drains[host] = moment;
      ++answer.drains;
      return answer;
    }
    state.blown = moment;
    state.by = host;
    state.counted = answer.drains + 1;
    answer = answer_of(state, most);
    answer.alarm = true;
    return answer;
  };
  try {
    return asked(folder_of(most), seconds, change);
  } catch (const Error& error) {
    return {.problem = error.what()};
  }
}

FuseAnswer reset_fuse(const std::optional<Policy>& policy) {
  if (!policy || !policy->at_most)
    throw UsageError("gate: --reset-fuse: --policy FILE, with \"at_most\", says which fuse");
  const AtMost& most = *policy->at_most;
  return asked(folder_of(most), reset_seconds, [&](FuseFile& state) {
    const FuseAnswer was = answer_of(state, most);
    state.drains.clear();
    state.blown.reset();
    state.by.clear();
    state.counted = 0;
    return was;
  });
}

}  // namespace assay::gate
