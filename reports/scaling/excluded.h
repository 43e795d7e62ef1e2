// Records left out of the figures, listed by case and reason.
#pragma once

#include "harness/runs/run_set.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::report::scaling {

struct Excluded {
  std::string title;
  std::vector<int> ranks;  // ascending, unique
  std::string reason;
  std::size_t records = 0;
  bool minor = false;  // reported elsewhere (skipped, broken) or not expected here: listed only in the table
  Entry first;         // in the order in which they were added
};

class ExclusionList {
 public:
  void add(const std::string& title, const std::string& reason, const Entry& entry, bool minor = false);
  std::vector<Excluded> list();  // sorted by title, then reason

 private:
  std::map<std::pair<std::string, std::string>, Excluded> lines_;
};

}  // namespace assay::report::scaling
