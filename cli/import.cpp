// assay import: figures of other tools as run directories.
#include "cli/command.h"
#include "cli/formats.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/figures/printed.h"
#include "harness/kineto/reader.h"
#include "harness/kineto/record.h"
#include "reports/exchange/write_runs.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <tuple>

namespace assay::cli {

namespace {

// A trace is no list of figures but one record, with its steps and what ran in them.
constexpr report::ImportFormat traces{"kineto", "traces of the PyTorch profiler, one a rank, also gzipped", nullptr};
struct ImportOptions {
  std::string format, out, rules, commit_key, step, name;
  std::vector<std::string> files, metrics, better;
};

// Directions by name; the one without a name is of --metric.
std::map<std::string, Better> directions_of(const ImportOptions& options) {
  std::map<std::string, Better> directions;
  for (const std::string& text : options.better) {
    const std::size_t equals = text.rfind('=');
    const std::string name = equals == text.npos ? "" : text.substr(0, equals);
    if (name.empty() && (equals != text.npos || options.metrics.empty()))
      throw UsageError("import: --better needs a name, NAME=higher or NAME=lower, or --metric NAME");
    directions[name] = better_from(text.substr(equals + 1), "import: --better");
  }
  return directions;
}

// Reads every file before anything is written.
std::vector<ForeignFile> read_all(const ImportOptions& options, const report::ImportFormat& format) {
  std::map<std::string, Better> directions = directions_of(options);
  std::optional<Better> better_of_named;
  if (const auto given = directions.find(""); given != directions.end()) better_of_named = given->second;
  directions.erase("");
  const std::string rules = options.rules.empty() ? "" : report::file_input(options.rules).text();
  std::vector<ForeignFile> all;
  for (const std::string& file : options.files) {
    report::ForeignInput input = report::file_input(file);
    input.commit_key = options.commit_key, input.rules = rules, input.rules_file = options.rules;
    all.push_back(options.metrics.empty() ? format.read(input)
                                          : report::read_named(input, options.metrics, better_of_named));
    for (const std::string& remark : all.back().remarks) say("assay: import: {}: {}\n", file, one_line(remark));
    if (const std::size_t count = all.back().not_read; count > 0)
      say("assay: import: {}: not read: {} of its parts, the first {}\n", file, count, all.back().first_not_read);
  }
  report::set_directions(all, directions);
  return all;
}

ExitCode import_traces(const ImportOptions& options) {
  std::vector<kineto::RankTrace> ranks;
  for (const std::string& file : options.files)
    ranks.push_back(kineto::read_trace(report::file_input(file).more, file, options.step));
  results_are_stored();
  show_text(kineto::import_job(kineto::job_of(std::move(ranks)), options.name, options.out));
  return ExitCode::ok;
}

ExitCode run_import(const ImportOptions& options) {
  for (const auto& [given, flag, name] : {std::tuple(!options.metrics.empty(), "--metric", "lines"),
                                          {!options.rules.empty(), "--rules", "superbench"},
                                          {!options.commit_key.empty(), "--commit-key", "gbench"},
                                          {!options.step.empty(), "--step", "kineto"},
                                          {!options.name.empty(), "--name", "kineto"}})
    if (given && options.format != name)
      throw UsageError(fmt::format("import: {} is for {}, not for {}", flag, name, options.format));
  if (options.format == traces.name) return import_traces(options);
  const auto& format = format_named(report::import_formats(), options.format);
  std::vector<ForeignFile> contents = read_all(options, format);
  const std::string guessed = report::guessed_directions(contents);
  results_are_stored();
  const std::size_t runs = report::write_runs(std::move(contents), options.files, format.name, options.out, show_text);
  show_text(guessed);
  if (runs > 0) return ExitCode::ok;
  say("assay: import: no figure in {}\n", fmt::join(options.files, ", "));
  return ExitCode::no_data;
}

}  // namespace

Command import_command(CLI::App& root) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* app = root.add_subcommand("import", "Make run directories from the figures of another tool");
  std::vector<report::ImportFormat> formats{traces};
  formats.insert(formats.end(), report::import_formats().begin(), report::import_formats().end());
  add_format(*app, options->format, std::span<const report::ImportFormat>(formats));
  app->add_option("files", options->files, "Files that the tool wrote")->required()->type_name("FILE");
  app->add_option("--out", options->out, "New run directory; with several times or machines, a directory of them")
      ->required()
      ->type_name("DIR");
  app->add_option("--better", options->better, "Which way a metric or a case counts; with --metric also without a name")
      ->allow_extra_args(false)
      ->type_name("[NAME=]higher|lower");
  app->add_option("--rules", options->rules, "SuperBench's rules file, whose criteria tell which way metrics count")
      ->type_name("FILE");
  app->add_option("--commit-key", options->commit_key, "Member of gbench's context that names the commit")
      ->type_name("NAME");
  app->add_option("--metric", options->metrics, "Read only the figure NAME of lines, from any output; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app->add_option("--step", options->step, "Kineto's range that is a step, if it is not ProfilerStep#N")
      ->type_name("NAME");
  app->add_option("--name", options->name, "What to call kineto's job; by default trace")->type_name("NAME");
  app->footer(app->get_footer() + "\n" + metric_grammar);
  return {app, [options] { return run_import(*options); }};
}

}  // namespace assay::cli
