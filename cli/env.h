// The description of this machine, which `assay env` and `assay audit` share.
#pragma once

#include "cli/options.h"

#include <CLI/CLI.hpp>

#include <string>

namespace assay::cli {

struct Description {
  Outputs outputs;
  std::string expect;       // path of an expectation file; empty: none
  std::string expect_text;  // its text, if the file is another host's
  bool audit = false, with_serials = false, with_bmc = false;

  // Declares --expect and --json.
  void add_to(CLI::App& app);
  // Describes the machine and what distorts measurements on it, or with `audit` everything that is broken or badly set
  // up. failed: it has less than expected, or a fault; no_data: a part of the expectation is not judged. Throws
  // UsageError for a bad expectation file.
  ExitCode run() const;
};

}  // namespace assay::cli
