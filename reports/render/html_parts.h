// Parts of the HTML page: ids, cells, tables, figures. Used by render_html alone.
#pragma once

#include "reports/model/document.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace assay::report {

// The ids of a document as HTML takes them: letters, digits, '-', '_' and '.', each one once.
class Ids {
 public:
  explicit Ids(const Document& document);

  // ` id="..."` for the first element that asks by this name, nothing for later ones and for an empty name.
  std::string attribute(const std::string& name);
  // The id that a link to this name leads to; empty when the document has no such place.
  std::string target(const std::string& name) const;

 private:
  void add(const std::string& name);

  std::map<std::string, std::string> ids_;
  std::set<std::string> used_;
  std::set<std::string> given_;
};

// A sign for tones that must not rest on colour alone, with its word for screen readers; empty for plain and faint.
std::string sign_html(Tone tone);
std::string_view tone_class(Tone tone);

// A table in a box of its own that scrolls sideways where the page is narrow.
void table_html(std::string& out, const Table& table, Ids& ids);
// A canvas with its alternative text, and what it draws as a table: the script reads the points from there.
// `most_points`: of a curve.
void figure_html(std::string& out, const Figure& figure, std::size_t most_points, Ids& ids);

}  // namespace assay::report
