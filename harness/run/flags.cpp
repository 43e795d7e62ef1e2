#include "harness/run/flags.h"

#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& word : split_commas(text)) {
    const std::int64_t value = parse_flag(fmt::format("--ranks {}", one_line(text)), word, parse_integer);
    if (value < 1 || value > 65536)
      throw UsageError(fmt::format("--ranks {}: {} is not between 1 and 65536", one_line(text), value));
    if (std::find(ranks.begin(), ranks.end(), value) == ranks.end()) ranks.push_back(static_cast<int>(value));
  }
  return ranks;
}

std::map<std::string, std::string> parse_labels(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("--label {}: must be K=V", in_quotes(text)));
    if (!is_utf8(text)) throw UsageError(fmt::format("--label {}: must be UTF-8", in_quotes(text)));
    labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return labels;
}

std::set<Fault> parse_faults(const std::vector<std::string>& texts) {
  std::set<Fault> faults;
  for (const std::string& text : texts) {
    for (const std::string& word : split_commas(text)) {
      const auto fault = from_word<Fault>(word);
      if (!fault)
        throw UsageError(
            fmt::format("--inject {}: unknown fault{}", in_quotes(word), suggestion(word, all_words<Fault>())));
      faults.insert(*fault);
    }
  }
  return faults;
}

}  // namespace assay
