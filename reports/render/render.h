// Renderers: one Document as terminal text, Markdown, HTML or JSON; one TestSuite as JUnit XML. Equal documents give
// equal bytes.
#pragma once

#include "reports/model/document.h"
#include "reports/model/test_suite.h"

#include <string>

namespace assay::report {

struct TerminalStyle {
  bool colour = false;
  int width = 100;  // columns; long texts are wrapped or shortened in the first column
};

std::string render_terminal(const Document& document, const TerminalStyle& style);
std::string render_markdown(const Document& document);
// One file that needs no other and no network, whatever strings the document holds. Long curves are thinned so that a
// page draws about 3,000 points; their lowest and highest stay. Where a page would be larger than 1 MB, long tables
// show their first rows and say so, those of appendices (Section::in_terminal) first.
std::string render_html(const Document& document);
// {"schema":1,"title":..,"verdict":..,"sections":[{"id":..,"tables":[{"id":..,"rows":[{column id: data}]}],
//  "figures":[{"id":..,"curves":[{"name":..,"points":[{"x":..,"y":..}]}]}]}]}
std::string render_json(const Document& document);
// JUnit XML: one test suite.
std::string render_junit(const TestSuite& suite);

}  // namespace assay::report
