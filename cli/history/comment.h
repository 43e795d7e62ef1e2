// The page and the comment that `history check` and `history report` write.
#pragma once

#include "cli/options.h"
#include "harness/history/history.h"
#include "reports/history/document.h"

#include <CLI/CLI.hpp>

#include <string>

namespace assay::cli {

void add_commit_url_option(CLI::App& app, std::string& url);
// Throws UsageError, which begins with `verb`, for an address without the commit's place.
void check_commit_url(const char* verb, const std::string& url);
// Writes the page and the comment, where they were asked for.
void write_night(const char* verb, const Outputs& outputs, const history::History& history,
                 const history::Outcome& outcome, const history::CommentStyle& style, const history::View& view = {});

}  // namespace assay::cli
