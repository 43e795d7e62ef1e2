// Renderers: one Document as terminal text, Markdown or JSON; one TestSuite as JUnit XML. Equal documents give equal
// bytes.
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
// {"schema":1,"title":..,"verdict":..,"sections":[{"id":..,"tables":[{"id":..,"rows":[{column id: data}]}]}]}
std::string render_json(const Document& document);
// JUnit XML: one test suite.
std::string render_junit(const TestSuite& suite);

}  // namespace assay::report
