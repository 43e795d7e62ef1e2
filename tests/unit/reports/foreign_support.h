// What tests of importers share.
#pragma once

#include "reports/exchange/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace assay::report {

inline ForeignInput foreign_input(std::string text) {
  return {.file = "f.log", .more = [text = std::move(text)](std::string& to) mutable {
            to += text;
            return !std::exchange(text, {}).empty();
          }};
}

inline ForeignFile read_format(std::string_view name, const ForeignInput& input) {
  for (const ImportFormat& format : import_formats())
    if (format.name == name) return format.read(input);
  ADD_FAILURE() << name;
  return {};
}
inline ForeignFile read_format(std::string_view name, const std::string& text) {
  return read_format(name, foreign_input(text));
}

// "NAME METRIC" with its first value.
inline std::map<std::string, double> values_of(const ForeignFile& file) {
  std::map<std::string, double> values;
  for (const ForeignFigure& one : file.figures())
    if (!one.values.empty()) values[one.name + " " + one.metric] = one.values.front();
  return values;
}

inline const ForeignFigure& figure_of(const std::vector<ForeignFigure>& figures, const std::string& name,
                                      const std::string& metric) {
  static const ForeignFigure none;
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const ForeignFigure& one) { return one.name == name && one.metric == metric; });
  if (found != figures.end()) return *found;
  ADD_FAILURE() << name << " " << metric;
  return none;
}

}  // namespace assay::report
