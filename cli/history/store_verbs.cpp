// assay history store: merge, alias, compact and salvage look after the store.
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/store/store.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct StoreVerbOptions {
  std::string store, first, second;
  std::vector<std::string> files;
};

// "365" or "365d" before the last night, or a date.
history::Night first_kept(const std::string& keep, history::Night last) {
  const std::string digits = keep.ends_with("d") ? keep.substr(0, keep.size() - 1) : keep;
  constexpr std::size_t max_digits = 6;
  if (!digits.empty() && digits.size() <= max_digits && digits.find_first_not_of("0123456789") == std::string::npos)
    return last - std::stoi(digits) + 1;
  return *history::night_of(moment_of("history store compact: --keep", keep));
}

ExitCode run_merge(const StoreVerbOptions& options) {
  store::Store store = store::Store::open(store_path(options.store));
  results_are_stored();
  for (const std::string& file : options.files) show("{}: {} taken\n", file, plural(store.merge(file), "run"));
  return ExitCode::ok;
}

ExitCode run_alias(const StoreVerbOptions& options) {
  store::Store::open_existing(store_path(options.store)).alias(options.first, options.second);
  results_are_stored();
  fmt::print("{} continues {}\n", options.second, options.first);
  return ExitCode::ok;
}

ExitCode run_compact(const StoreVerbOptions& options) {
  store::Store store = store::Store::open_existing(store_path(options.store));
  const auto last = store.last_night();
  if (!last) {
    say("assay: history store compact: no run is there\n");
    return ExitCode::no_data;
  }
  const std::size_t gone = store.compact(first_kept(options.first, *last));
  results_are_stored();
  fmt::print("{} became weekly medians\n", plural(gone, "figure"));
  return ExitCode::ok;
}

ExitCode run_salvage(const StoreVerbOptions& options) {
  const std::vector<std::string> lost = store::salvage(options.first, options.second);
  results_are_stored();
  for (const std::string& line : lost) fmt::print("lost: {}\n", line);
  fmt::print("{}: {}\n", options.second, lost.empty() ? "everything could be read" : "what could be read");
  return ExitCode::ok;
}

Command merge_command(CLI::App& store) {
  auto options = std::make_shared<StoreVerbOptions>();
  CLI::App* app = store.add_subcommand("merge", "Take what other stores have and this one has not");
  app->add_option("files", options->files, "Other stores; they keep what they have")->required();
  add_store_option(*app, options->store);
  return {app, [options] { return run_merge(*options); }};
}

Command alias_command(CLI::App& store) {
  auto options = std::make_shared<StoreVerbOptions>();
  CLI::App* app = store.add_subcommand("alias", "Continue a renamed benchmark: the new name continues the old one");
  app->add_option("old", options->first, "A key or a title of cases, or the name of a series")->required();
  app->add_option("new", options->second, "The same")->required();
  add_store_option(*app, options->store);
  return {app, [options] { return run_alias(*options); }};
}

Command compact_command(CLI::App& store) {
  auto options = std::make_shared<StoreVerbOptions>();
  CLI::App* app = store.add_subcommand("compact", "Replace the figures of old weeks by their medians");
  app->add_option("--keep", options->first,
                  "Keep this as it is: a number of days up to the last night (365d), or since a date")
      ->required();
  add_store_option(*app, options->store);
  return {app, [options] { return run_compact(*options); }};
}

Command salvage_command(CLI::App& store) {
  auto options = std::make_shared<StoreVerbOptions>();
  CLI::App* app = store.add_subcommand("salvage", "Copy what can still be read of a damaged store to a new one");
  app->add_option("damaged", options->first, "The damaged store; it is not changed")->required();
  app->add_option("--out", options->second, "New file to write")->required()->type_name("FILE");
  return {app, [options] { return run_salvage(*options); }};
}

}  // namespace

Command history_store_command(CLI::App& history) {
  CLI::App* app = history.add_subcommand("store", "Merge, compact or repair stores; continue a renamed benchmark");
  return with_verbs(*app, {merge_command, alias_command, compact_command, salvage_command});
}

}  // namespace assay::cli
