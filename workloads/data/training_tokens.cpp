// The user's token file as a training set.
#include "workloads/data/masked_tokens.h"
#include "workloads/data/shuffle.h"
#include "workloads/data/token_set.h"
#include "workloads/data/training_files.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstring>

namespace assay::data {

namespace {

constexpr std::uint64_t one_window_in = 20;  // windows are held out, one in 20, at the end of the file
constexpr std::uint64_t checked_bytes = std::uint64_t{4} << 30;  // on opening; later windows are checked when read
constexpr std::int64_t bert_vocabulary = 30522;
constexpr std::int32_t bert_mask = 103;

[[noreturn]] void refuse(const std::string& path, std::uint64_t position, std::uint32_t id, std::int64_t vocabulary) {
  throw UsageError(fmt::format("{}: token {} (counted from 0) is id {}, but the model's vocabulary is 0 to {}", path,
                               position, id, vocabulary - 1));
}

// Throws if one of `count` tokens from `position` in the file is outside the vocabulary.
template <typename Token>
void check_ids(const TokenSet& set, std::uint64_t position, std::uint64_t count, std::int64_t vocabulary) {
  constexpr std::uint64_t piece = 4096;
  const auto at = [&](std::uint64_t i) {
    Token token;
    std::memcpy(&token, set.data() + (position + i) * sizeof(Token), sizeof(Token));
    return token;
  };
  for (std::uint64_t begin = 0; begin < count; begin += piece) {
    const std::uint64_t end = std::min(count, begin + piece);
    Token largest = 0;
    for (std::uint64_t i = begin; i < end; ++i) largest = std::max(largest, at(i));
    if (std::int64_t{largest} < vocabulary) continue;
    for (std::uint64_t i = begin; i < end; ++i)
      if (std::int64_t{at(i)} >= vocabulary) refuse(set.path(), position + i, at(i), vocabulary);
  }
}

class TrainingTokens final : public TrainingSet {
 public:
  TrainingTokens(const std::string& path, std::int64_t seq, std::int64_t vocabulary, bool masked)
      : set_(path, seq), vocabulary_(vocabulary), masked_(masked) {
    held_out_ = set_.windows() < 2 ? 0 : std::max<std::uint64_t>(1, set_.windows() / one_window_in);
    check(0, std::min(set_.bytes(), checked_bytes) / static_cast<std::uint64_t>(set_.token_bytes()));
  }

  SampleKind kind() const override { return masked_ ? SampleKind::masked : SampleKind::causal; }
  std::int64_t extent() const override { return set_.window_length(); }
  std::int64_t classes() const override { return vocabulary_; }
  std::int64_t samples(Split split) const override {
    return static_cast<std::int64_t>(split == Split::train ? set_.windows() - held_out_ : held_out_);
  }
  std::string name() const override { return "files"; }
  std::unique_ptr<SampleMaker> maker(Split split, std::uint64_t seed) const override;

  const TokenSet& tokens() const { return set_; }
  bool masked() const { return masked_; }
  MaskedVocabulary symbols() const {
    const auto ids = static_cast<std::int32_t>(vocabulary_);
    return {0, ids, vocabulary_ == bert_vocabulary ? bert_mask : ids - 1};
  }
  // The window at a place of a split's endless stream.
  std::uint64_t window(Split split, std::uint64_t seed, std::uint64_t place) const {
    const std::uint64_t train = set_.windows() - held_out_;
    return split == Split::train ? Shuffle(seed, place / train, train).at(place % train) : train + place;
  }
  // Checks a window that was not checked when the file was opened.
  void check_window(std::uint64_t window) const {
    const auto length = static_cast<std::uint64_t>(set_.window_length());
    if (set_.offset(window + 1) + static_cast<std::uint64_t>(set_.token_bytes()) > checked_bytes)
      check(window * length, length + 1);
  }

 private:
  void check(std::uint64_t position, std::uint64_t count) const {
    if (set_.token_bytes() == 4)
      check_ids<std::uint32_t>(set_, position, count, vocabulary_);
    else if (vocabulary_ <= UINT16_MAX)
      check_ids<std::uint16_t>(set_, position, count, vocabulary_);
  }

  TokenSet set_;
  std::int64_t vocabulary_;
  bool masked_;
  std::uint64_t held_out_ = 0;  // windows
};

class WindowMaker final : public SampleMaker {
 public:
  WindowMaker(const TrainingTokens& set, Split split, std::uint64_t seed)
      : set_(set),
        split_(split),
        seed_(seed),
        masks_(seed, split == Split::train ? "token file train masks" : "token file validation masks"),
        window_(static_cast<std::size_t>(set.extent()) + 1) {}

  void make(std::int64_t position, const SampleSlot& slot) override {
    const auto place = static_cast<std::uint64_t>(position);
    const std::uint64_t window = set_.window(split_, seed_, place);
    set_.check_window(window);
    const TokenSet& tokens = set_.tokens();
    const std::byte* from = tokens.data() + tokens.offset(window);
    auto* out = reinterpret_cast<std::int32_t*>(slot.data);
    const auto seq = static_cast<std::size_t>(set_.extent());
    if (set_.masked()) {
      tokens.widen(from, window_.data());
      std::copy_n(window_.data(), seq, out);
      mask_tokens(masks_, place, set_.symbols(), {out, seq}, {out + seq, seq}, ignored_target,
                  [](std::size_t) { return true; });
      std::fill_n(out + 2 * seq, seq, 0);
    } else {
      tokens.widen(from, out);
    }
    *slot.index = static_cast<std::int64_t>(window);
    *slot.label = static_cast<std::int32_t>(seq);
    *slot.bytes = static_cast<std::int64_t>(seq + 1) * tokens.token_bytes();
  }

 private:
  const TrainingTokens& set_;
  Split split_;
  std::uint64_t seed_;
  Rng masks_;
  std::vector<std::int32_t> window_;
};

std::unique_ptr<SampleMaker> TrainingTokens::maker(Split split, std::uint64_t seed) const {
  return std::make_unique<WindowMaker>(*this, split, split == Split::train ? seed : 0);
}

}  // namespace

std::shared_ptr<const TrainingSet> open_training_tokens(const std::string& path, std::int64_t seq,
                                                        std::int64_t vocabulary, bool masked) {
  return std::make_shared<TrainingTokens>(path, seq, vocabulary, masked);
}

}  // namespace assay::data
