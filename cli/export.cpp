// assay export: finished runs in the formats of other tools.
#include "reports/exchange/export.h"
#include "cli/command.h"
#include "cli/files.h"

#include <fmt/format.h>

#include <algorithm>
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
  std::vector<std::string> names;
  std::string listed;
  for (const report::ExportFormat& format : report::export_formats()) {
    names.emplace_back(format.name);
    listed += fmt::format("  {:<10} {}\n", format.name, format.summary);
  }
  app->add_option("format", options->format, "See below")->required()->check(CLI::IsMember(names));
  app->add_option("dirs", options->dirs, "Run directories")->required();
  app->add_option("--out", options->out, "Write to FILE, which is replaced at once (- for stdout)")->required();
  app->add_flag("--injected", options->injected, "Treat records with injected faults as measurements");
  app->footer("Formats:\n" + listed);
  return {app, [options] {
            const report::RunSet runs(read_runs(options->dirs),
                                      options->injected ? report::Injected::include : report::Injected::exclude);
            const auto formats = report::export_formats();
            const auto format = std::find_if(formats.begin(), formats.end(),
                                             [&](const auto& one) { return one.name == options->format; });
            write_named_file("export", options->out, format->text(runs));
            if (!runs.entries().empty()) return ExitCode::ok;
            fmt::print(stderr, "assay: export: no finished case in {}\n", fmt::join(options->dirs, ", "));
            return ExitCode::no_data;
          }};
}

}  // namespace assay::cli
