// The key figures as bars, each on a scale that means something, or as their samples over time.
#pragma once

#include "reports/model/document.h"
#include "reports/references/references.h"

#include <string>
#include <vector>

namespace assay::report {

// A figure's scale ends at what its parts allow (bound_share_of()), or at the best of reference runs and published
// figures, one element of `besides` per figure. A figure without any of them has no bar, but a strip of its samples.
Bars bars_of(const std::vector<KeyFigure>& figures, const std::vector<Beside>& besides, const std::string& id,
             const std::string& title);

}  // namespace assay::report
