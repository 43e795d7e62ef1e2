// Contents of every HTML page, embedded at build time from reports/render/assets and the system's Chart.js.
#pragma once

#include <string_view>

namespace assay::report {

struct Asset {
  std::string_view text;
  std::string_view sha256;  // the text's hash, base64, for the page's Content-Security-Policy
};

extern const Asset page_style;
extern const Asset page_script;
extern const Asset chart_library;  // Chart.js, minified

}  // namespace assay::report
