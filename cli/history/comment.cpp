#include "cli/history/comment.h"

#include "cli/files.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "reports/render/render.h"

#include <fmt/format.h>

namespace assay::cli {

void add_commit_url_option(CLI::App& app, std::string& url) {
  app.add_option("--commit-url", url,
                 "Address of a commit, for the links of --md: https://github.com/me/it/commit/{commit}")
      ->type_name("URL");
}

void check_commit_url(const char* verb, const std::string& url) {
  if (url.empty()) return;
  const bool is_web = url.starts_with("https://") || url.starts_with("http://");
  if (!is_web || url.find(history::commit_place) == url.npos || url.find_first_of(" ()<>\n\"") != url.npos)
    throw UsageError(
        fmt::format("{}: --commit-url {}: give a web address with {} where the commit stands, such as "
                    "https://github.com/me/it/commit/{}",
                    verb, in_quotes(url), history::commit_place, history::commit_place));
}

void write_night(const char* verb, const Outputs& outputs, const history::History& history,
                 const history::Outcome& outcome, const history::CommentStyle& style, const history::View& view) {
  if (!outputs.html.empty())
    write_named_file(verb, outputs.html, report::render_html(history::history_document(history, view)));
  if (!outputs.markdown.empty())
    write_named_file(verb, outputs.markdown, history::night_comment(history, outcome, style));
}

}  // namespace assay::cli
