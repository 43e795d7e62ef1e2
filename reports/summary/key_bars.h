// The key figures as bars, each on a scale of its own.
#pragma once

#include "reports/model/document.h"
#include "reports/references/references.h"

#include <string>
#include <vector>

namespace assay::report {

// A figure's scale ends at its peak, if that is known and higher; a time's at twice the time. Reference runs and
// published figures, one element per figure, are on the scale too.
Bars bars_of(const std::vector<KeyFigure>& figures, const std::vector<Beside>& besides, const std::string& id,
             const std::string& title);

}  // namespace assay::report
