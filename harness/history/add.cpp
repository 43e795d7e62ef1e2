#include "harness/history/add.h"

#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/runs/host_runs.h"
#include "harness/runs/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <system_error>
#include <utility>

namespace assay::history {

namespace fs = std::filesystem;

namespace {

// The run directories below a folder, and what cannot be read there.
void find_runs(const fs::path& folder, RunDirectories& to) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code none, unknown;
    if (!entry->is_directory(none)) continue;
    if (fs::exists(entry->path() / "run.json", unknown) || unknown)
      to.found.push_back(entry->path());  // reading it says why it cannot be read
    else if (!entry->is_symlink(none))
      find_runs(entry->path(), to);
  }
  if (error) to.unreadable.push_back(fmt::format("{} cannot be read: {}", folder.string(), error.message()));
}

class Adder {
 public:
  Adder(store::Store& store, const store::AddOptions& options, const AddOutput& output)
      : store_(store), options_(options), output_(output) {}

  void add(const std::vector<fs::path>& dirs) {
    std::vector<RunData> runs;
    for_all_or_each(dirs, [&](const std::vector<fs::path>& some) {
      for (RunData& run : read_runs(some))
        for (RunData& part : split_hosts(std::move(run))) runs.push_back(std::move(part));
    });
    for_all_or_each(runs, [&](const std::vector<RunData>& some) {
      const std::vector<store::Added> added = store_.add(some, options_);
      for (std::size_t i = 0; i < some.size(); ++i) tell(some[i], added[i]);
    });
  }
  void refuse(const std::string& why, ExitCode code) {
    output_.remark(why);
    code_ = worst(code_, code);
  }
  ExitCode code() const { return code_; }

 private:
  // `work` with all of them, or if it refuses one, with each by itself. What a full or damaged store refuses ends it.
  template <typename One, typename Work>
  void for_all_or_each(const std::vector<One>& all, const Work& work) {
    try {
      work(all);
    } catch (const store::StoreError&) {
      throw;
    } catch (const Error& error) {
      if (all.size() == 1) {
        refuse(error.what(), error.code());
        return;
      }
      for (const One& one : all) for_all_or_each(std::vector<One>{one}, work);
    }
  }

  void tell(const RunData& run, const store::Added& added) const {
    std::string name = one_line(run.dir.string());
    if (ran_on_each_host(run)) name += one_line(fmt::format(" on {}", machine_of(run).hosts.front()));
    for (const std::string& problem : first_ten(run.problems, name)) output_.remark(one_line(problem, 400));
    const auto counted = [](std::size_t n, const char* word) { return plural(n, word); };
    output_.result(
        fmt::format("{}: {}{}", name, added.fresh ? "added, " + counted(added.points, "figure") : "already there",
                    added.left_out == 0 ? "" : fmt::format(", {} left out", counted(added.left_out, "record"))));
  }

  store::Store& store_;
  const store::AddOptions& options_;
  const AddOutput& output_;
  ExitCode code_ = ExitCode::ok;
};

// Runs are read and added in batches, so that other processes need not wait long for a transaction and memory is
// bounded: records take about eight times as much there as in their file.
std::vector<fs::path>::const_iterator end_of_batch(std::vector<fs::path>::const_iterator from,
                                                   std::vector<fs::path>::const_iterator end) {
  constexpr std::ptrdiff_t max_runs = 256;
  constexpr std::uintmax_t max_bytes = std::uintmax_t{8} << 20;
  std::uintmax_t bytes = 0;
  auto until = from;
  while (until != end && until - from < max_runs && bytes < max_bytes) {
    std::error_code none;
    const std::uintmax_t size = fs::file_size(*until++ / "records.jsonl", none);
    if (!none) bytes += size;
  }
  return until;
}

}  // namespace

RunDirectories run_directories(const std::vector<std::string>& given) {
  RunDirectories all;
  std::set<fs::path> seen;
  std::error_code none;
  const auto add = [&](const fs::path& dir) {
    if (seen.insert(fs::weakly_canonical(dir, none)).second) all.found.push_back(dir);
  };
  for (const std::string& path : given) {
    if (!fs::is_directory(path, none)) throw UsageError(fmt::format("history add: {}: no such directory", path));
    std::error_code unknown;
    if (fs::exists(fs::path(path) / "run.json", unknown) || unknown) {
      add(path);
      continue;
    }
    RunDirectories inside;
    find_runs(path, inside);
    if (inside.found.empty() && inside.unreadable.empty())
      throw UsageError(fmt::format("history add: {} holds no run (no run.json)", path));
    std::ranges::sort(inside.found);
    for (const fs::path& dir : inside.found) add(dir);
    all.unreadable.insert(all.unreadable.end(), inside.unreadable.begin(), inside.unreadable.end());
  }
  return all;
}

ExitCode add_runs(store::Store& store, const RunDirectories& runs, const store::AddOptions& options,
                  const AddOutput& output) {
  Adder adder(store, options, output);
  for (const std::string& one : runs.unreadable) adder.refuse(one, ExitCode::broken);
  for (auto from = runs.found.begin(); from != runs.found.end();) {
    const auto until = end_of_batch(from, runs.found.end());
    adder.add({from, until});
    from = until;
  }
  return adder.code();
}

}  // namespace assay::history
