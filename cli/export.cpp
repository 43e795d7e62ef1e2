// assay export: finished runs in the formats of other tools.
#include "reports/exchange/export.h"
#include "cli/command.h"
#include "cli/formats.h"
#include "cli/options.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "reports/cost/cost.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

Command export_command(CLI::App& root) {
  struct Options {
    std::string format, out;
    Runs runs;
    Prices prices;
  };
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("export", "Write finished runs in the format of another tool");
  add_format(*app, options->format, report::export_formats());
  options->runs.add_to(*app);
  options->prices.add_to(*app);
  app->add_option("--out", options->out, "File to write, replaced at once (- for stdout)")
      ->required()
      ->type_name("FILE");
  return {app, [options] {
            const RunSet runs = options->runs.read();
            const auto& format = format_named(report::export_formats(), options->format);
            write_named_file("export", options->out, format.text(runs, report::load_prices(options->prices)));
            const auto left_out = format.left_out ? format.left_out(runs) : std::vector<std::string>();
            if (!left_out.empty())
              say("assay: export: {} has no place for some cases; left out: {}\n", format.name,
                  one_line(first_few(left_out), 1000));
            return options->runs.code_of(runs);
          }};
}

}  // namespace assay::cli
