#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <random>
#include <string_view>

namespace assay::fuzz {

namespace {

constexpr std::size_t max_bytes = 1 << 20;
// Bytes that mean something to some reader.
constexpr std::string_view telling("\0\xff\n\r\t \"\\{}[],:=-.%0", 21);
constexpr std::string_view numbers[] = {
    "0",    "-1",   "1e308", "1e999", "-1e-320", "9223372036854775808", "18446744073709551616",
    "NaN",  "-inf", "0x1p9", "1.",    "00",      "2147483648",          "null",
    "true", "\"\"", "[]",    "{}"};

class Mutation {
 public:
  Mutation(std::span<const std::string> seeds, std::uint64_t number)
      : seeds_(seeds), random_(number * 0x9e3779b97f4a7c15u + 1), text_(seed()) {}

  std::string made() {
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change();
    if (text_.size() > max_bytes) text_.resize(max_bytes);
    return std::move(text_);
  }

 private:
  // Not a distribution of the standard library: those differ between libraries.
  std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(random_() % end); }
  std::size_t place() { return below(text_.size() + 1); }
  const std::string& seed() { return seeds_[below(seeds_.size())]; }

  void change() {
    const std::size_t at = place(), length = std::min(text_.size() - at, below(64) + 1);
    switch (below(11)) {
      case 0:
        if (at < text_.size()) text_[at] = static_cast<char>(text_[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text_.size()) text_[at] = telling[below(telling.size())];
        break;
      case 2: text_.insert(at, 1, telling[below(telling.size())]); break;
      case 3: text_.erase(at, length); break;
      case 4: text_.resize(at); break;
      case 5: text_.insert(at, text_.substr(at, length)); break;
      case 6: {  // the start of this and the end of another
        const std::string& other = seed();
        text_ = text_.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      case 7: set_number(at); break;
      case 8: {
        const std::size_t depth = 1 + below(20000);
        text_.insert(at, std::string(depth, "[{("[below(3)]));
        break;
      }
      case 9:
        text_.insert(at, std::string(1 + below(100000), text_.empty() ? 'x' : text_[std::min(at, text_.size() - 1)]));
        break;
      case 10: {  // a line again, or two
        const std::size_t begin = text_.rfind('\n', at) == text_.npos ? 0 : text_.rfind('\n', at);
        const std::string line = text_.substr(begin, std::min(text_.find('\n', at), text_.size()) - begin);
        for (std::size_t again = 1 + below(50); again > 0 && text_.size() < max_bytes; --again)
          text_.insert(begin, line);
        break;
      }
    }
  }

  // Puts an extreme number in place of the next one.
  void set_number(std::size_t at) {
    const std::size_t begin = text_.find_first_of("0123456789", at);
    if (begin == text_.npos) return;
    const std::size_t end = std::min(text_.find_first_not_of("0123456789.eE+-", begin), text_.size());
    text_.replace(begin, end - begin, numbers[below(std::size(numbers))]);
  }

  std::span<const std::string> seeds_;
  std::mt19937_64 random_;
  std::string text_;
};

}  // namespace

std::string mutated(std::span<const std::string> seeds, std::uint64_t number) { return Mutation(seeds, number).made(); }

}  // namespace assay::fuzz
