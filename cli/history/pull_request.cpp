// history check --pr: a change's base and head, side by side on this machine.
#include "harness/history/pull_request.h"
#include "cli/history/tonight.h"
#include "harness/core/streams.h"
#include "harness/history/series/split.h"
#include "harness/json/json.h"
#include "reports/exchange/recognise.h"
#include "reports/history/document.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace assay::cli {

namespace {

std::vector<std::string> suspicious_cases(const std::string& store, const char* verb, const JudgeFlags& judge) {
  const char* const named = std::getenv("ASSAY_HISTORY");
  if (store.empty() && !(named && *named)) return {};
  store::Store opened = store::Store::open_existing(store_path(store));
  return history::by_suspicion(
      history::read_history(opened, judge.options(verb, opened, history::OtherSettings::counts)));
}

}  // namespace

ExitCode check_pull_request(const std::string& base, const BuildFlags& flags, const JudgeFlags& judge,
                            const std::string& store, const Outputs& outputs) {
  constexpr const char* verb = "history check";
  if (flags.build.empty() && flags.run.empty())
    throw UsageError(
        fmt::format("{}: --pr {}: give --build and --run, which measure it here; what the store has of a "
                    "branch is compared by --branch",
                    verb, base));
  flags.require(verb);
  const history::Options options = judge.options(verb);
  const std::vector<std::string> cases = suspicious_cases(store, verb, judge);
  const double budget = flags.seconds(verb);
  const history::Repository repository = BuildFlags::repository(verb);
  const history::Commit onto = repository.commit(base), head = repository.commit("HEAD");
  // What came onto the base since the change began is not the change's.
  const history::Commit from = repository.commit(repository.merge_base(onto.hash, head.hash));
  if (from.hash == head.hash)
    throw UsageError(fmt::format("{}: --pr {}: HEAD has no commit that it lacks", verb, base));
  Children children("the comparison");
  history::Builds builds = flags.builds(repository, children);
  const auto start = Clock::now();
  const auto built = [&](const history::Commit& commit) {
    if (auto folder = builds.of(commit.hash, budget - seconds_since(start))) return *folder;
    throw Error(fmt::format("{}: {}", verb, builds.problem()));
  };
  const std::filesystem::path a = built(from), b = built(head);
  const auto measure = [&](const ab::Commands& commands, const ab::Options& asked) {
    return ab::run_commands(commands, asked, [&](const ProcessRun& one) { return children.run(one); });
  };
  history::PullRequest request{flags.run, flags.metric, std::max(options.tolerance, 1e-3)};
  request.budget = std::max(budget - seconds_since(start), 1e-3);
  request.seed = std::random_device()();
  history::PullRequestResult result = history::compare_builds(cases, request, a, b, report::read_tool, measure);
  result.base = from, result.head = head;
  for (const std::string& remark : result.remarks) say("assay: {}: {}\n", verb, remark);
  const report::Document document = history::pull_request_document(result);
  outputs.write_pages(document);
  outputs.write_json([&] { return dump_document(history::pull_request_json(result)); });
  outputs.print(document);
  return result.code();
}

ExitCode check_branch(const std::string& branch, bool strict, store::Store& store, const history::History& main,
                      const Outputs& outputs) {
  const history::BranchComparison comparison =
      history::compare_branch(history::split_by(store.read(branch), main.options.split_by, "--split-by"), branch, main);
  const report::Document document = history::branch_document(comparison, main);
  outputs.write_pages(document);
  outputs.write_json([&] { return dump_document(history::branch_json(comparison, main)); });
  outputs.print(document);
  return with_reason("history check", comparison.exit_code(strict),
                     comparison.changes.empty() ? fmt::format("no run of branch {} can be compared", branch)
                                                : comparison.blind_text());
}

}  // namespace assay::cli
