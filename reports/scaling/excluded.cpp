#include "reports/scaling/excluded.h"

#include <algorithm>

namespace assay::report::scaling {

void ExclusionList::add(const std::string& title, const std::string& reason, const Entry& entry, bool minor) {
  Excluded& excluded = lines_[{title, reason}];
  if (excluded.records++ == 0) {
    excluded.title = title;
    excluded.reason = reason;
    excluded.minor = minor;
    excluded.first = entry;
  }
  const int ranks = entry.record->world_ranks;
  const auto place = std::lower_bound(excluded.ranks.begin(), excluded.ranks.end(), ranks);
  if (place == excluded.ranks.end() || *place != ranks) excluded.ranks.insert(place, ranks);
}

std::vector<Excluded> ExclusionList::list() {
  std::vector<Excluded> all;
  for (auto& [key, excluded] : lines_) all.push_back(std::move(excluded));
  lines_.clear();
  return all;
}

}  // namespace assay::report::scaling
