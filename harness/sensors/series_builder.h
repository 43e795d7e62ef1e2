// Collects readings into series of bounded length.
#pragma once

#include "harness/record/record.h"
#include "harness/sensors/sensors.h"

#include <map>
#include <string>

namespace assay {

// When a series is full, neighbours become one point (levels: the later one; rates: their mean; masks: their union),
// and from then on a point takes twice as many readings. A case of any length keeps between half and all of
// `max_points`.
class SeriesBuilder {
 public:
  explicit SeriesBuilder(std::size_t max_points) : max_points_(max_points < 2 ? 2 : max_points & ~std::size_t{1}) {}

  void add(double seconds, const Reading& reading);
  // Ends collection; a last, unfinished point is kept.
  std::map<std::string, Series> take();

 private:
  struct Growing {
    Series series;
    Reading::Kind kind = Reading::Kind::level;
    std::size_t stride = 1;   // readings per point
    std::size_t pending = 0;  // readings of the point being made
    double pending_at = 0;
    double pending_sum = 0;              // rates
    std::size_t pending_values = 0;      // values that were present
    std::optional<double> pending_last;  // levels, masks
  };
  void finish_point(Growing& growing);
  void halve(Growing& growing);

  std::size_t max_points_;
  std::map<std::string, Growing, std::less<>> all_;
};

}  // namespace assay
