// Token files as windows for training. The first two bytes select the window length and how tokens are read.
#include "tests/fuzz/fuzz.h"
#include "workloads/data/token_set.h"
#include "workloads/data/training_files.h"

#include <numeric>
#include <vector>

namespace assay::fuzz {

void tokens(std::string_view input) {
  static const MemoryFile narrow(folder() / "tokens.bin"), wide(folder() / "tokens.u32.bin");
  if (input.size() < 2) return;
  const std::int64_t seq = 1 + static_cast<unsigned char>(input[0]) % 32;
  const auto choice = static_cast<unsigned char>(input[1]);
  const MemoryFile& file = choice & 1 ? wide : narrow;
  const bool masked = choice & 2;
  const std::int64_t vocabulary = choice & 4 ? 50257 : 300;
  file.write(input.substr(2));
  std::shared_ptr<const data::TrainingSet> set;
  (void)data::TokenSet::problem_with(file.path(), seq);
  if (!accepts(file.path(), [&] { set = data::open_training_tokens(file.path(), seq, vocabulary, masked); })) return;
  for (const data::Split split : {data::Split::train, data::Split::validation}) {
    if (set->samples(split) == 0) continue;
    data::StreamOptions options;
    options.split = split;
    options.micro_batch = 2;
    options.seed = choice;
    data::TrainingStream stream(set, options);
    const auto count = static_cast<std::size_t>(2 * seq);
    std::vector<std::int32_t> ids(count), targets(count), lengths(2);
    for (int i = 0; i < 2; ++i) {
      stream.next({.ids = ids, .lengths = lengths, .targets = targets});
      for (const std::int32_t id : ids) expect(id >= 0 && id < vocabulary, "an id outside the vocabulary");
      for (const std::int32_t id : targets)
        expect(id == data::ignored_target || (id >= 0 && id < vocabulary), "a target outside the vocabulary");
    }
  }
}

}  // namespace assay::fuzz
