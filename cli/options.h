// Groups of flags that several commands share.
#pragma once

#include "cli/files.h"
#include "harness/hosts/allocation.h"
#include "reports/cost/cost.h"

#include <CLI/CLI.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// Refuses an empty value of a flag, as of an unset variable in a script.
extern const CLI::Validator not_empty;

// The run directories of a command, and --injected.
struct Runs {
  std::vector<std::string> dirs;
  bool injected = false;

  // Declares the directories, as an argument of this name, alone or with --injected.
  CLI::Option* add_dirs_to(CLI::App& app, const char* name = "dirs");
  CLI::Option* add_to(CLI::App& app, const char* name = "dirs");
  // Throws UsageError as read_run does.
  RunSet read() const;
  // Says on stderr if no case of the runs is finished; the exit code of that, else ok.
  ExitCode code_of(const RunSet& runs) const;

 private:
  std::string verb_;
};

// Flags that say which hosts take part.
struct Hosts {
  std::string hostfile, names, only_passed;

  // Declares --hostfile, with this help, --hosts and --only-passed.
  void add_to(CLI::App& app, const std::string& help);
  // Throws UsageError as find_allocation(), only_passed() and only_hosts() do.
  Allocation allocation() const;
};

// --prices and --price, for report::load_prices().
struct Prices : report::PriceFlags {
  void add_to(CLI::App& app);
};

// --json, --html, --md and --junit: files that are written besides the text on stdout. If one of them is stdout, it
// replaces the text.
struct Outputs {
  std::string json, html, markdown, junit;  // paths, "-" for stdout; empty: not asked for

  // Declares --json (stdout, or with --json=FILE a file), and of "--html", "--md" and "--junit" those named.
  void add_to(CLI::App& app, std::initializer_list<std::string_view> more = {});
  // Each writes its file if it was asked for. Throws as write_named_file() does.
  void write_pages(const report::Document& page) const { write_pages(page, page); }
  void write_pages(const report::Document& html_page, const report::Document& markdown_page) const;
  template <typename Text>
  void write_json(const Text& text) const {
    if (!json.empty()) write(json, text());
  }
  template <typename Text>
  void write_junit(const Text& text) const {
    if (!junit.empty()) write(junit, text());
  }
  void print(const report::Document& document) const;
  void print(const std::string& text) const;

 private:
  void write(const std::string& path, const std::string& text) const { write_named_file(verb_.c_str(), path, text); }
  std::vector<std::string> all() const { return {json, html, markdown, junit}; }

  std::string verb_;
};

}  // namespace assay::cli
