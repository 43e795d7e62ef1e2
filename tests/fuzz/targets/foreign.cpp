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
  for (const report::ImportFormat& format : report::import_formats()) {
    ForeignFile file;
    if (!accepts("f", [&] { file = format.read(std::string(input), "f"); })) continue;
    expect((file.not_read == 0) == file.first_not_read.empty(), "what was not read is not named");
    for (const ForeignFigure& figure : file.figures) {
      expect(!figure.name.empty(), "a figure without a case");
      expect(std::all_of(figure.values.begin(), figure.values.end(), [](double value) { return std::isfinite(value); }),
             "a value that is not finite");
      expect(!figure.check || figure.check->passed || figure.status != Status::ok, "ok with a check that failed");
    }
    std::size_t records = 0;
    for (const report::ImportedRun& run : report::runs_of_figures(file.figures, format.name, "f")) {
      records += run.records.size();
      expect(run.run.at("not_ok") == std::count_if(run.records.begin(), run.records.end(),
                                                   [](const Record& one) { return one.status != Status::ok; }),
             "not_ok does not count the records");
    }
    expect((records == 0) == file.figures.empty(), "figures without records");
  }
  std::size_t looked_for = 0;
  for (const std::string& name : printed_names(input)) {
    if (looked_for++ == 20) break;
    PrintedFigure found;
    if (!accepts("f", [&] { found = printed_figure({input}, {{name}}, "f"); })) continue;
    expect(!found.values.empty() && std::isfinite(found.value), "a printed figure without a value");
  }
}

}  // namespace assay::fuzz
