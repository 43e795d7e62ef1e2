#include "cli/files.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

// The same path with a last part that can name it in documents: "runs/a/" and "." have none.
fs::path with_name(const fs::path& dir) {
  fs::path plain = dir.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  if (plain.has_filename() && plain.filename() != "." && plain.filename() != "..") return plain;
  std::error_code none;
  const fs::path whole = fs::canonical(dir, none);
  return none ? dir : whole;
}

bool is_stdout(std::string_view path) { return path == "-" || path == "/dev/stdout"; }

report::TerminalStyle terminal_style() {
  report::TerminalStyle style;
  if (!isatty(STDOUT_FILENO)) {
    style.width = report::unlimited_columns;  // what a program reads is not cut
    return style;
  }
  const char* no_color = std::getenv("NO_COLOR");
  style.colour = !no_color || *no_color == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::clamp<int>(size.ws_col, 60, 100);
  return style;
}

}  // namespace

std::vector<fs::path> run_dirs(const std::vector<std::string>& dirs) {
  std::vector<fs::path> once;
  std::set<fs::path> seen;
  for (const std::string& dir : dirs) {
    std::error_code none;
    const fs::path real = fs::weakly_canonical(dir, none);
    if (seen.insert(none ? fs::path(dir) : real).second) once.push_back(with_name(dir));
  }
  return once;
}

std::vector<RunData> read_runs(const std::vector<std::string>& dirs) { return assay::read_runs(run_dirs(dirs)); }

std::vector<std::string> last_runs(const char* subcommand, std::size_t count) {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> runs;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("runs", none))
    if (const auto written = std::filesystem::last_write_time(entry.path() / "run.json", none); !none)
      runs.emplace_back(written, entry.path().string());
  if (runs.size() < count)
    throw UsageError(fmt::format("{}: --last: runs/ holds {}, and {} asked for", subcommand,
                                 plural(static_cast<std::int64_t>(runs.size()), "run"),
                                 count == 1 ? "one is" : fmt::format("{} are", count)));
  std::ranges::sort(runs);
  std::vector<std::string> last;
  for (std::size_t i = runs.size() - count; i < runs.size(); ++i) last.push_back(runs[i].second);
  return last;
}

void write_named_file(const char* subcommand, const std::string& path, const std::string& text) {
  if (is_stdout(path)) {
    fmt::print("{}", text);  // byte for byte
    flush_stdout();
    return;
  }
  std::optional<NewFile> file;
  try {
    file.emplace(path);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", subcommand, error.what()));
  }
  file->write(text);
  file->finish();
}

void say_unused_prices(const char* subcommand, const RunSet& runs, const report::PriceSource& prices) {
  if (const std::string text = report::unused_file(runs.runs(), prices); !text.empty())
    say("assay: {}: {}\n", subcommand, one_line(text, 400));
}

void print(const report::Document& document, const std::vector<std::string>& files) {
  print(report::render_terminal(document, terminal_style()), files);
}

void print(const std::string& text, const std::vector<std::string>& files) {
  if (std::ranges::any_of(files, is_stdout)) return;
  show_text(text);
  flush_stdout();
}

}  // namespace assay::cli
