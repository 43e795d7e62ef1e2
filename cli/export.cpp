// assay export: finished runs in the formats of other tools.
#include "reports/exchange/export.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/formats.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

Command export_command(CLI::App& root) {
  struct Options {
    std::string format, out;
    std::vector<std::string> dirs;
    bool injected = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("export", "Writes finished runs in the format of another tool");
  add_format(*app, options->format, report::export_formats());
  app->add_option("dirs", options->dirs, "Run directories")->required();
  app->add_option("--out", options->out, "Write to FILE, which is replaced at once (- for stdout)")->required();
  app->add_flag("--injected", options->injected, "Treat records with injected faults as measurements");
  return {app, [options] {
            const report::RunSet runs(read_runs(options->dirs),
                                      options->injected ? report::Injected::include : report::Injected::exclude);
            const auto& format = format_named(report::export_formats(), options->format);
            write_named_file("export", options->out, format.text(runs));
            const auto left_out = format.left_out ? format.left_out(runs) : std::vector<std::string>();
            if (!left_out.empty())
              say("assay: export: {} has no place for some cases; left out: {}\n", format.name,
                  one_line(first_few(left_out), 1000));
            if (!runs.entries().empty()) return ExitCode::ok;
            say("assay: export: no finished case in {}\n", fmt::join(options->dirs, ", "));
            return ExitCode::no_data;
          }};
}

}  // namespace assay::cli
