// Parts of the HTML page: ids, cells, tables, figures. Used by render_html alone.
#pragma once

#include "reports/model/document.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace assay::report {

// How many of a table's rows a page shows.
struct RowLimits {
  std::size_t main = 0;
  std::size_t appendix = 0;  // of sections that terminals leave out
  std::size_t of(const Section& section) const { return section.in_terminal ? main : appendix; }
};

// The ids of a document as HTML takes them: letters, digits, '-', '_' and '.', each one once, so that they need no
// quotes. Rows beyond the limits have none.
class Ids {
 public:
  Ids(const Document& document, const RowLimits& limits);

  // ` id=...` for the first element that asks by this name, nothing for later ones and for an empty name.
  std::string attribute(const std::string& name);
  // The id that a link to this name leads to; empty when the document has no such place.
  std::string target(const std::string& name) const;

 private:
  void add(const std::string& name);

  std::map<std::string, std::string> ids_;
  std::set<std::string> used_;
  std::set<std::string> given_;
};

// A sign for tones that must not rest on colour alone; empty for plain and faint.
std::string_view sign_html(Tone tone);
// A number for scripts, five digits of it.
std::string short_number(double value);

// A table in a box of its own that scrolls sideways where the page is narrow. `name`: for who cannot see where it
// stands, when it has no title.
// At most `max_rows`; what is left out is said.
void table_html(std::string& out, const Table& table, const std::string& name, std::size_t max_rows, Ids& ids);
// A canvas with its alternative text, and what it draws as a table: the script reads the points from there.
// `max_points`: of a curve.
void figure_html(std::string& out, const Figure& figure, std::size_t max_points, Ids& ids);

}  // namespace assay::report
