// Renderers: a Document as terminal text, Markdown, HTML or JSON; a TestSuite as JUnit XML. Equal documents give equal
// bytes.
#pragma once

#include "reports/model/document.h"
#include "reports/model/test_suite.h"

#include <string>

namespace assay::report {

inline constexpr int unlimited_columns = 100'000;  // nothing is wrapped or cut

struct TerminalStyle {
  bool colour = false;
  int width = 100;  // columns; wraps long texts and shortens wide cells
};

std::string render_terminal(const Document& document, const TerminalStyle& style);
std::string render_markdown(const Document& document);
// One self-contained file that needs no network, whatever strings the document has. Thins long curves to about 3,000
// points per page, keeping extremes. If a page would exceed 1 MB, long tables show only their first rows and say so,
// those of appendices (Section::in_terminal) first.
std::string render_html(const Document& document);
// {"schema":1,"title":..,"verdict":..,"sections":[{"id":..,"tables":[{"id":..,"rows":[{column id: data}]}],
//  "figures":[{"id":..,"curves":[{"name":..,"points":[{"x":..,"y":..}]}]}]}]}
std::string render_json(const Document& document);
std::string render_junit(const TestSuite& suite);

}  // namespace assay::report
