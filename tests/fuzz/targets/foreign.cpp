// Files of other tools, as `assay import` reads them. Every input goes to the readers of all formats.
#include "harness/figures/mentions.h"
#include "harness/figures/printed.h"
#include "harness/json/json.h"
#include "reports/exchange/import.h"
#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cmath>

namespace assay::fuzz {

void foreign(std::string_view input) {
  // The second half stands for SuperBench's rules, if there is one.
  const std::size_t half = input.find("\n---\n");
  for (const report::ImportFormat& format : report::import_formats()) {
    ForeignFile file;
    std::string_view rest = input.substr(0, half);
    report::ForeignInput in{"f", [&](std::string& text) {
                              // In small parts, so that a row may be cut anywhere.
                              const std::string_view part = rest.substr(0, 100);
                              rest.remove_prefix(part.size());
                              text += part;
                              return !part.empty();
                            }};
    if (half != input.npos) in.rules = input.substr(half), in.rules_file = "f";
    if (!accepts("f", [&] { file = format.read(in); })) continue;
    expect((file.not_read == 0) == file.first_not_read.empty(), "what was not read is not named");
    std::vector<ForeignFile> files = {file};
    (void)report::guessed_directions(files);
    const std::vector<ForeignFigure> figures = file.figures();
    const auto measured = std::ranges::find_if(figures, [](const ForeignFigure& one) { return !one.values.empty(); });
    if (measured != figures.end()) {
      report::set_directions(files, {{measured->metric, Better::lower}});
      for (const ForeignFigure& one : files.front().figures())
        expect(one.metric != measured->metric || one.better == Better::lower, "a direction that is not set");
    }
    accepts("import: --better ", [&] { report::set_directions(files, {{"no such metric", Better::lower}}); });
    for (const ForeignFigure& figure : figures) {
      expect(!figure.name.empty(), "a figure without a case");
      expect(std::all_of(figure.values.begin(), figure.values.end(), [](double value) { return std::isfinite(value); }),
             "a value that is not finite");
      expect(!figure.check || figure.check->passed || figure.status != Status::ok, "ok with a check that failed");
      expect(!figure.ci95 || figure.ci95->low <= figure.ci95->high, "an interval upside down");
    }
    std::size_t records = 0;
    for (const std::size_t run : report::in_order(file)) {
      int not_ok = 0;
      const Json json = report::import_run(file, file.runs[run], format.name, "f", [&](Record record) {
        ++records;
        not_ok += record.status != Status::ok;
      });
      expect(json.at("not_ok") == not_ok, "not_ok does not count the records");
    }
    expect((records == 0) == figures.empty(), "figures without records");
  }
  static const MemoryFile printed(folder() / "printed.txt");
  printed.write(input);
  std::size_t looked_for = 0;
  for (const std::string& name : printed_names(input)) {
    if (looked_for++ == 20) break;
    PrintedFigure found;
    // Its whole name, and what follows the last mark in it.
    for (const std::string& wanted : {name, name.substr(name.find_last_of("/:. ") + 1)}) {
      if (wanted.empty() || !accepts("f", [&] { found = printed_figure({input}, {{wanted}}, "f"); })) continue;
      expect(!found.values.empty() && std::isfinite(found.value), "a printed figure without a value");
    }
    // As `import --metric NAME` does.
    accepts(printed.path(), [&] {
      const ForeignFile file = report::read_named(report::file_input(printed.path()), {name}, std::nullopt);
      expect(file.figures().size() == 1, "other figures than the one that was named");
    });
  }
}

}  // namespace assay::fuzz
