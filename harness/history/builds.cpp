#include "harness/history/builds.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

namespace assay::history {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kept_builds = 12;

// Says by which command a checkout was built, and when it was last used. It lies beside the checkout, which stays
// clean.
fs::path mark_of(const fs::path& checkout) { return checkout.string() + ".built"; }

}  // namespace

Builds::Builds(const Repository& repository, fs::path folder, std::string command, Run run)
    : repository_(repository), folder_(std::move(folder)), command_(std::move(command)), run_(std::move(run)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw UsageError(fmt::format("{}: {}", folder_.string(), error.message()));
  folder_ = fs::canonical(folder_);
  remove_old();
}

void Builds::remove_old() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> marks;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, none))
    if (entry.path().extension() == ".built") marks.emplace_back(entry.last_write_time(none), entry.path());
  std::ranges::sort(marks, std::greater());
  for (std::size_t i = kept_builds; i < marks.size(); ++i) {
    fs::remove(marks[i].second, none);
    fs::remove_all(marks[i].second.string().substr(0, marks[i].second.string().size() - mark_of({}).string().size()),
                   none);
  }
}

std::optional<fs::path> Builds::of(const std::string& commit, double limit_seconds) {
  const fs::path checkout = folder_ / commit, mark = mark_of(checkout);
  std::error_code none;
  if (fs::exists(mark, none) && read_whole(mark, 1 << 20) == command_ && fs::exists(checkout / ".git", none)) {
    fs::last_write_time(mark, fs::file_time_type::clock::now(), none);
    return checkout;
  }
  fs::remove(mark, none);
  fs::remove_all(checkout, none);  // of a build that was interrupted, or by another command
  repository_.check_out(commit, checkout);
  ProcessRun build;
  build.process = {.words = {"/bin/sh", "-c", shell_in_folder(checkout, command_)}, .variables = inherited_variables()};
  build.limit_seconds = limit_seconds;
  build.merged = true;
  const FinishedProcess done = run_(build);
  if (done.ended() && done.problem.empty()) {
    replace_file(mark, command_);
    return checkout;
  }
  const std::string why = done.ended()                           ? done.problem
                          : done.stopped == Stopped::interrupted ? "was interrupted"
                                                                 : "took longer than the budget leaves";
  problem_ = fmt::format("the build of {} {}: {}", commit.substr(0, 12), why, one_line(last_lines(done.output, 1)));
  return std::nullopt;
}

}  // namespace assay::history
