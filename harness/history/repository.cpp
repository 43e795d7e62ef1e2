#include "harness/history/repository.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/process/run.h"

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <sstream>
#include <utility>

namespace assay::history {

namespace {

constexpr double git_seconds = 120;

FinishedProcess git(const std::filesystem::path& folder, std::vector<std::string> words) {
  ProcessRun run;
  run.process.words = {find_program("git"), "-C", folder.string()};
  run.process.words.insert(run.process.words.end(), words.begin(), words.end());
  run.process.variables = inherited_variables();
  run.process.variables["LC_ALL"] = "C";
  run.process.variables["GIT_OPTIONAL_LOCKS"] = "0";
  run.limit_seconds = git_seconds;
  return run_process(run);
}

std::string problem_of(const FinishedProcess& done) {
  const std::string said = one_line(last_lines(done.errors, 1));
  return said.empty() ? (done.problem.empty() ? "git did not end" : done.problem) : said;
}

std::string variable(const std::map<std::string, std::string>& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// The branch that a CI job is about, where nothing is checked out by name; empty if it is the default one, or unknown.
std::string branch_of_job(const std::map<std::string, std::string>& variables) {
  for (const char* name : {"GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"})
    if (std::string branch = variable(variables, name); !branch.empty()) return branch;
  // A schedule runs on the default branch.
  if (variable(variables, "GITHUB_EVENT_NAME") == "schedule") return "";
  if (variable(variables, "GITHUB_REF_TYPE") == "branch") return variable(variables, "GITHUB_REF_NAME");
  const std::string branch = variable(variables, "CI_COMMIT_BRANCH");
  return branch == variable(variables, "CI_DEFAULT_BRANCH") ? "" : branch;
}

Commit commit_of(const std::string& line) {
  const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
  if (second == line.npos) throw Error("git printed no commit: " + one_line(line));
  long long moment = 0;
  std::from_chars(line.data() + first + 1, line.data() + second, moment);
  return {line.substr(0, first), utc_text(static_cast<std::time_t>(moment)), line.substr(second + 1)};
}

constexpr const char* commit_format = "--format=%H%x09%ct%x09%s";

}  // namespace

std::optional<Repository> Repository::of(const std::filesystem::path& folder, std::string* why) {
  const auto none = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  if (find_program("git").empty()) return none("there is no git on the PATH");
  const FinishedProcess done = git(folder, {"rev-parse", "--show-toplevel"});
  if (!done.ended() || !done.problem.empty()) return none(problem_of(done));
  return Repository(std::string(trim(done.output)));
}

std::string Repository::ask(std::vector<std::string> words) const {
  const std::string verb = words.front();
  const FinishedProcess done = git(folder_, std::move(words));
  if (!done.ended() || !done.problem.empty()) throw UsageError(fmt::format("git {}: {}", verb, problem_of(done)));
  return std::string(trim(done.output));
}

std::string Repository::try_to_ask(std::vector<std::string> words) const {
  const FinishedProcess done = git(folder_, std::move(words));
  return done.ended() && done.problem.empty() ? std::string(trim(done.output)) : std::string();
}

bool Repository::is_shallow() const { return try_to_ask({"rev-parse", "--is-shallow-repository"}) == "true"; }

Checkout Repository::checkout(const std::map<std::string, std::string>& variables) const {
  Checkout found;
  found.commit = try_to_ask({"rev-parse", "--verify", "-q", "HEAD"});  // none before the first commit
  found.branch = try_to_ask({"symbolic-ref", "-q", "--short", "HEAD"});
  if (found.branch.empty()) found.branch = branch_of_job(variables);
  const std::string remote = try_to_ask({"symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD"});
  if (found.branch == "main" || found.branch == "master" || "origin/" + found.branch == remote) found.branch.clear();
  found.dirty = !ask({"status", "--porcelain", "--untracked-files=no"}).empty();
  return found;
}

Commit Repository::commit(const std::string& name) const {
  const std::string line = name.starts_with('-') ? "" : try_to_ask({"log", "-1", commit_format, name, "--"});
  if (!line.empty()) return commit_of(line);
  throw UsageError(
      fmt::format("{} is no commit here{}", in_quotes(name),
                  is_shallow() ? ": the clone is shallow: `git fetch --unshallow` (in CI, fetch-depth: 0)" : ""));
}

std::string Repository::merge_base(const std::string& a, const std::string& b) const {
  if (std::string found = try_to_ask({"merge-base", a, b}); !found.empty()) return found;
  throw UsageError(
      fmt::format("{} and {} have no common ancestor here{}", one_line(a), one_line(b),
                  is_shallow() ? ": the clone is shallow: `git fetch --unshallow` (in CI, fetch-depth: 0)" : ""));
}

std::vector<Commit> Repository::commits(const std::string& from, const std::string& to) const {
  const std::string first = commit(from).hash, last = commit(to).hash;
  if (is_shallow())
    throw UsageError(
        fmt::format("the clone is shallow, so the commits from {} to {} are not all here: `git fetch --unshallow` (in "
                    "CI, fetch-depth: 0)",
                    first.substr(0, 12), last.substr(0, 12)));
  if (try_to_ask({"merge-base", first, last}) != first)
    throw UsageError(fmt::format("{} is no ancestor of {}", one_line(from), one_line(to)));
  std::istringstream lines(
      ask({"log", "--first-parent", "--reverse", commit_format, fmt::format("{}..{}", first, last), "--"}));
  std::vector<Commit> all;
  for (std::string line; std::getline(lines, line);) all.push_back(commit_of(line));
  return all;
}

std::vector<std::string> Repository::first_parents() const {
  if (is_shallow())
    throw UsageError(
        "the clone is shallow, so the order of all commits is not known here: `git fetch --unshallow` (in CI, "
        "fetch-depth: 0)");
  std::istringstream lines(ask({"rev-list", "--first-parent", "--reverse", "HEAD"}));
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  return all;
}

void Repository::check_out(const std::string& commit, const std::filesystem::path& folder) const {
  ask({"worktree", "prune"});  // one whose folder was removed by hand
  ask({"worktree", "add", "--detach", "--force", folder.string(), commit});
}

std::filesystem::path Repository::own_folder() const {
  const std::filesystem::path folder = ask({"rev-parse", "--git-common-dir"});
  return folder.is_absolute() ? folder : folder_ / folder;
}

std::vector<std::size_t> by_halves(std::size_t count) {
  std::vector<std::size_t> order;
  if (count > 0) order.push_back(count - 1);
  if (count > 1) order.push_back(0);
  std::deque<std::pair<std::size_t, std::size_t>> gaps{{0, count == 0 ? 0 : count - 1}};
  for (; !gaps.empty(); gaps.pop_front()) {
    const auto [first, last] = gaps.front();
    if (last - first < 2) continue;
    const std::size_t middle = first + (last - first) / 2;
    order.push_back(middle);
    gaps.emplace_back(middle, last);
    gaps.emplace_back(first, middle);
  }
  return order;
}

}  // namespace assay::history
