#include "reports/scaling/apart.h"

#include <algorithm>

namespace assay::report::scaling {

void ApartList::add(const std::string& title, const std::string& reason, const Entry& entry, bool minor) {
  Apart& apart = lines_[{title, reason}];
  if (apart.records++ == 0) {
    apart.title = title;
    apart.reason = reason;
    apart.minor = minor;
    apart.first = entry;
  }
  const int ranks = entry.record->world_ranks;
  const auto place = std::lower_bound(apart.ranks.begin(), apart.ranks.end(), ranks);
  if (place == apart.ranks.end() || *place != ranks) apart.ranks.insert(place, ranks);
}

std::vector<Apart> ApartList::take() {
  std::vector<Apart> all;
  for (auto& [key, apart] : lines_) all.push_back(std::move(apart));
  lines_.clear();
  return all;
}

}  // namespace assay::report::scaling
