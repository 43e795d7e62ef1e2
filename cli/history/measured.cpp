#include "cli/history/measured.h"

#include "harness/core/host.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/store/facts.h"
#include "harness/json/json.h"
#include "harness/json/masked.h"
#include "harness/machine/environment.h"
#include "harness/machine/root.h"
#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <cstdlib>

namespace assay::cli {

void PlaceFlags::add_to(CLI::App& app) {
  app.add_option(
         "--machine-by", machine_by,
         "host: each host is a machine; class: so are all hosts of equal CPU and GPUs; auto (default): class in\n"
         "a container and in CI, where names of hosts last a night")
      ->check(CLI::IsMember({"auto", "host", "class"}));
  app.add_option("--branch", branch, "Branch of the sources, if it is not what git says");
  app.add_option("--label", labels, "A fact of the run, such as the digest of an image; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
}

store::AddOptions PlaceFlags::options(const history::Place& place) const {
  store::AddOptions options;
  options.title = case_title;
  const char* const ci = std::getenv("CI");
  const bool passing = (ci && *ci) || !text_member(place.environment, "/container").empty();
  options.machine_by_class = machine_by == "class" || (machine_by == "auto" && passing);
  options.branch = branch == "main" || branch == "master" ? "" : branch;
  return options;
}

history::Place PlaceFlags::here(const char* verb, const std::string& command) const {
  history::Place place;
  place.host = this_host();
  place.environment = masked(environment_json(probe_machine(user_root())));
  place.facts = history::tool_versions(command);
  for (const std::string& label : labels) {
    const std::size_t equals = label.find('=');
    if (equals == label.npos || equals == 0)
      throw UsageError(fmt::format("{}: --label {}: use NAME=VALUE", verb, in_quotes(label)));
    place.facts[label.substr(0, equals)] = label.substr(equals + 1);
  }
  std::string why;
  const auto repository = history::Repository::of(".", &why);
  if (!repository) {
    say("assay: {}: no commit is known: {}\n", verb, why);
    return place;
  }
  place.checkout = repository->checkout(variables_of_launcher());
  if (!branch.empty()) place.checkout.branch = branch == "main" || branch == "master" ? "" : branch;
  if (place.checkout.dirty) say("assay: {}: files differ from the commit: the run says dirty\n", verb);
  if (!place.checkout.branch.empty())
    say("assay: {}: branch {}: checks look at main unless --branch {} is given to them; --branch main counts it "
        "there\n",
        verb, place.checkout.branch, place.checkout.branch);
  return place;
}

void add_and_tell(store::Store& store, const std::vector<RunData>& runs, const store::AddOptions& options) {
  const std::vector<store::Added> added = store.add(runs, options);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunData& run = runs[i];
    const std::string commit = text_member(run.run, "/git/commit");
    const auto not_ok = static_cast<std::int64_t>(number_member(run.run, "/not_ok").value_or(0));
    show("{} {} of {}{}, {}machine {}\n",
         added[i].fresh ? "added" : "already there:", plural(static_cast<std::int64_t>(added[i].points), "figure"),
         plural(static_cast<std::int64_t>(run.records.size()), "case"),
         not_ok > 0 ? fmt::format(", {} not ok", not_ok) : "",
         commit.empty() ? "" : fmt::format("commit {}, ", commit.substr(0, 12)),
         store::machine_name(run, store::facts_of(run, options), options.machine_by_class));
  }
}

report::ToolOutput measure(const char* verb, const report::ToolCommand& command,
                           const std::function<FinishedProcess(const ProcessRun&)>& run) {
  try {
    report::ToolOutput output = report::run_tool(command, run);
    for (std::size_t i = 0; i < output.files.size(); ++i) {
      const ForeignFile& file = output.files[i].contents;
      for (const std::string& remark : file.remarks)
        say("assay: {}: {}: {}\n", verb, output.names[i], one_line(remark));
      if (file.not_read > 0)
        say("assay: {}: {}: not read: {} of its parts, the first {}\n", verb, output.names[i], file.not_read,
            file.first_not_read);
    }
    if (output.stopped == Stopped::interrupted) throw Error("interrupted", ExitCode::no_data);
    return output;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", verb, error.what()), error.code());
  }
}

}  // namespace assay::cli
