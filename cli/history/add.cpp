// assay history add: the figures of finished runs go into the store.
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/history/store/store.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "harness/runs/host_runs.h"
#include "harness/runs/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

struct HistoryAddOptions {
  std::vector<std::string> runs;
  std::string store, at, env, branch;
  std::string machine_by = "host";
};

// The run directories below a folder, and what cannot be read there: it may hold some.
void find_runs(const fs::path& folder, std::vector<fs::path>& found, std::vector<std::string>& unreadable) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code none, unknown;
    if (!entry->is_directory(none)) continue;
    if (fs::exists(entry->path() / "run.json", unknown) || unknown)
      found.push_back(entry->path());  // reading it says why it cannot be read
    else if (!entry->is_symlink(none))
      find_runs(entry->path(), found, unreadable);
  }
  if (error) unreadable.push_back(fmt::format("{} cannot be read: {}", folder.string(), error.message()));
}

// The run directories among these and in the folders among these, in their order, each once.
std::vector<fs::path> run_directories(const std::vector<std::string>& given, std::vector<std::string>& unreadable) {
  std::vector<fs::path> dirs;
  std::set<fs::path> seen;
  std::error_code none;
  const auto add = [&](const fs::path& dir) {
    if (seen.insert(fs::weakly_canonical(dir, none)).second) dirs.push_back(dir);
  };
  for (const std::string& path : given) {
    if (!fs::is_directory(path, none)) throw UsageError(fmt::format("history add: {}: no such directory", path));
    std::error_code unknown;
    if (fs::exists(fs::path(path) / "run.json", unknown) || unknown) {
      add(path);
      continue;
    }
    std::vector<fs::path> inside;
    const std::size_t problems = unreadable.size();
    find_runs(path, inside, unreadable);
    if (inside.empty() && unreadable.size() == problems)
      throw UsageError(fmt::format("history add: {} holds no run (no run.json)", path));
    std::sort(inside.begin(), inside.end());
    for (const fs::path& dir : inside) add(dir);
  }
  return dirs;
}

store::AddOptions options_of(const HistoryAddOptions& given) {
  store::AddOptions options;
  options.title = case_title;
  options.machine_by_class = given.machine_by == "class";
  options.branch = given.branch;
  if (!given.at.empty()) options.at = moment_of("history add: --at", given.at);
  if (!given.env.empty()) options.environment = store::environment_facts(read_json(given.env));
  return options;
}

// Adds runs, and says of each what became of it. What cannot be added is named, and does not keep the others out.
class HistoryAdder {
 public:
  HistoryAdder(store::Store& store, store::AddOptions options) : store_(store), options_(std::move(options)) {}

  void add(const std::vector<fs::path>& dirs) {
    std::vector<RunData> runs;
    for_all_or_each(dirs, [&](const std::vector<fs::path>& some) {
      for (RunData& run : read_runs(some))
        for (RunData& part : split_hosts(std::move(run))) runs.push_back(std::move(part));
    });
    for_all_or_each(runs, [&](const std::vector<RunData>& some) {
      const std::vector<store::Added> added = store_.add(some, options_);
      for (std::size_t i = 0; i < some.size(); ++i) print_added(some[i], added[i]);
    });
  }

  // Names what is not added.
  void refuse(const std::string& why, ExitCode code) {
    say("assay: history add: {}\n", why);
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

  void print_added(const RunData& run, const store::Added& added) const {
    std::string name = one_line(run.dir.string());
    if (ran_on_each_host(run)) name += one_line(fmt::format(" on {}", machine_of(run).hosts.front()));
    for (const std::string& problem : run.problems) say("assay: history add: {}: {}\n", name, one_line(problem));
    const auto counted = [](std::size_t n, const char* word) { return plural(static_cast<std::int64_t>(n), word); };
    show("{}: {}{}\n", name, added.fresh ? "added, " + counted(added.points, "figure") : "already there",
         added.left_out == 0 ? "" : fmt::format(", {} left out", counted(added.left_out, "record")));
  }

  store::Store& store_;
  store::AddOptions options_;
  ExitCode code_ = ExitCode::ok;
};

ExitCode run_history_add(const HistoryAddOptions& given) {
  // A transaction of this many runs takes a fraction of a second, so that other processes need not wait long.
  constexpr std::size_t runs_at_once = 256;
  const fs::path file = store_path(given.store);
  std::vector<std::string> unreadable;
  const std::vector<fs::path> dirs = run_directories(given.runs, unreadable);
  const store::AddOptions options = options_of(given);
  store::Store store = store::Store::open(file);
  results_are_stored();
  HistoryAdder adder(store, options);
  for (const std::string& one : unreadable) adder.refuse(one, ExitCode::broken);
  for (std::size_t i = 0; i < dirs.size(); i += runs_at_once)
    adder.add({dirs.begin() + static_cast<std::ptrdiff_t>(i),
               dirs.begin() + static_cast<std::ptrdiff_t>(std::min(dirs.size(), i + runs_at_once))});
  return adder.code();
}

}  // namespace

Command history_add_command(CLI::App& history) {
  auto options = std::make_shared<HistoryAddOptions>();
  CLI::App* app = history.add_subcommand("add", "Adds finished runs; one that is there already stays as it is");
  app->add_option("runs", options->runs, "Run directories, and folders of them (as `assay import` makes)")->required();
  add_store_option(*app, options->store);
  app->add_option("--at", options->at, "When they ran, instead of what they say: 2026-01-31 or 2026-01-31T12:00:00Z");
  app->add_option("--env", options->env, "Where they ran, instead of what they say: a file from `assay env --json`");
  app->add_option("--machine-by", options->machine_by,
                  "host: each host is a machine (default); class: so are all hosts of equal CPU and GPUs")
      ->check(CLI::IsMember({"host", "class"}));
  app->add_option("--branch", options->branch,
                  "Of the sources they measure; reports and checks look at main and master unless a branch is named");
  return {app, [options] { return run_history_add(*options); }};
}

}  // namespace assay::cli
