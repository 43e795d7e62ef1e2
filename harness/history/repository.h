// The sources that were measured, as Git knows them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::history {

struct Commit {
  std::string hash;
  std::string date;     // when it was committed, as "2026-01-31T12:00:00Z"
  std::string subject;  // its message's first line
};

// What a checkout is now.
struct Checkout {
  std::string commit;
  std::string branch;  // empty on the main branch: `main`, `master`, or the remote's default one
  bool dirty = false;  // a tracked file differs from the commit
};

// A Git repository, asked by its program. Its members throw UsageError if that says no, with what it said.
class Repository {
 public:
  // That of a folder; absent if there is none, or no Git. `why` is then the reason.
  static std::optional<Repository> of(const std::filesystem::path& folder, std::string* why = nullptr);

  // In CI, where no branch is checked out, `variables` (the environment) names it.
  Checkout checkout(const std::map<std::string, std::string>& variables) const;
  // The commit that a name means.
  Commit commit(const std::string& name) const;
  // The newest that is an ancestor of both. Throws UsageError if there is none.
  std::string merge_base(const std::string& a, const std::string& b) const;
  // The commits after `from` up to `to` by first parents, the oldest first. Throws UsageError if `from` is no ancestor,
  // and for a shallow clone, in which it cannot be known.
  std::vector<Commit> commits(const std::string& from, const std::string& to) const;
  // HEAD and its first parents, the oldest first. Throws UsageError for a shallow clone.
  std::vector<std::string> first_parents() const;
  // A work tree of the commit, in a new folder.
  void check_out(const std::string& commit, const std::filesystem::path& folder) const;
  // Where files may lie that no commit takes up: below .git.
  std::filesystem::path own_folder() const;

 private:
  explicit Repository(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::string ask(std::vector<std::string> words) const;
  std::string try_to_ask(std::vector<std::string> words) const;
  bool is_shallow() const;

  std::filesystem::path folder_;
};

// The places of a list, the last one first, then the first, then the middle of each gap: whatever is left out in the
// end, the rest is spread evenly.
std::vector<std::size_t> by_halves(std::size_t count);

}  // namespace assay::history
