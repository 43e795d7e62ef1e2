// Records that no figure holds, listed with the reason; records of one case and reason make one line.
#pragma once

#include "reports/data/run_set.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::report::scaling {

struct Apart {
  std::string title;
  std::vector<int> ranks;  // ascending, each once
  std::string reason;
  std::size_t records = 0;
  bool minor = false;  // told elsewhere (skipped, broken), or nobody would expect it here: only in the table
  Entry first;         // of them, in the order in which they were added
};

class ApartList {
 public:
  void add(const std::string& title, const std::string& reason, const Entry& entry, bool minor = false);
  std::vector<Apart> take();  // by title, then reason

 private:
  std::map<std::pair<std::string, std::string>, Apart> lines_;
};

}  // namespace assay::report::scaling
