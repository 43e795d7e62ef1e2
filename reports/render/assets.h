// What every HTML page carries: made at build time from reports/render/assets and the distribution's Chart.js.
#pragma once

#include <string_view>

namespace assay::report {

struct Asset {
  std::string_view text;
  std::string_view sha256;  // of the text, base64: how the page's Content-Security-Policy knows it
};

extern const Asset page_style;
extern const Asset page_script;
extern const Asset chart_library;  // Chart.js, minified

}  // namespace assay::report
