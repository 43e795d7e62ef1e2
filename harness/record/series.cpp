#include "harness/record/series.h"

#include <algorithm>

namespace assay {

std::optional<double> value_at(const Series& series, double time) {
  std::optional<std::size_t> before;
  const std::size_t count = std::min(series.at.size(), series.values.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!series.values[i]) continue;
    if (series.at[i] == time) return series.values[i];
    if (series.at[i] > time) {
      if (!before) return std::nullopt;
      const double fraction = (time - series.at[*before]) / (series.at[i] - series.at[*before]);
      return std::lerp(*series.values[*before], *series.values[i], fraction);
    }
    before = i;
  }
  return std::nullopt;
}

}  // namespace assay
