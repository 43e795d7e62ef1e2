// Parts of the HTML page: ids, cells, tables, figures. Only for render_html.
#pragma once

#include "reports/model/document.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace assay::report {

// Max rows of a table on a page.
struct RowLimits {
  std::size_t main = 0;
  std::size_t appendix = 0;  // number of sections that terminals leave out
  std::size_t of(const Section& section) const { return section.in_terminal ? main : appendix; }
};

// Unique HTML ids of a document, of letters, digits, '-', '_' and '.', so that they need no quotes. Rows beyond the
// limits have none.
class Ids {
 public:
  Ids(const Document& document, const RowLimits& limits);

  // ` id=...` on the first call with this name, empty on later calls and for an empty name.
  std::string attribute(const std::string& name);
  // The id that a link to this name leads to; empty if the document has none.
  std::string target(const std::string& name) const;

 private:
  void add(const std::string& name);

  std::map<std::string, std::string> ids_;
  std::set<std::string> used_;
  std::set<std::string> given_;
};

// A sign for tones that must not rely on colour alone; empty for plain and faint.
std::string_view sign_html(Tone tone);
// A number for scripts, with five digits.
std::string short_number(double value);

// A table in a box that scrolls sideways on narrow pages, with at most `max_rows` rows and a note on what was cut.
// `name`: the accessible name of a table without a title.
void table_html(std::string& out, const Table& table, const std::string& name, std::size_t max_rows, Ids& ids);
// A canvas with its alternative text, and its points as a table, from which the script reads them. `max_points`: per
// curve.
void figure_html(std::string& out, const Figure& figure, std::size_t max_points, Ids& ids);

// Bars as inline SVG in a table of labels and figures.
void bars_html(std::string& out, const Bars& bars, Ids& ids);

}  // namespace assay::report
