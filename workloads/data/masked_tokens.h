// Chooses the tokens that an encoder must predict and what replaces them (Devlin et al., "BERT", NAACL 2019).
#pragma once

#include "harness/core/rng.h"

#include <cstdint>
#include <span>

namespace assay::data {

// In units of 1 / 65,536. A token is picked with 15 %; it then becomes [MASK] (80 %), a random symbol (10 %) or stays.
inline constexpr std::uint32_t picked_fraction = 9830;
inline constexpr std::uint32_t mask_fraction = 52429;
inline constexpr std::uint32_t random_fraction = 6554;

struct MaskedVocabulary {
  std::int32_t first_symbol = 0;  // symbols that may replace a token: [first_symbol, first_symbol + symbols)
  std::int32_t symbols = 0;
  std::int32_t mask = 0;
};

// Picks independently among the `eligible` tokens of `ids`, but at least one: draws again until there is one. Writes
// the picked tokens to `targets` (`ignored` elsewhere) and their replacements to `ids`. Depends only on rng and
// `sample`.
template <typename Eligible>
void mask_tokens(const Rng& rng, std::uint64_t sample, const MaskedVocabulary& vocabulary, std::span<std::int32_t> ids,
                 std::span<std::int32_t> targets, std::int32_t ignored, const Eligible& eligible) {
  constexpr std::uint64_t max_attempts = 64;
  bool any = false;
  for (std::uint64_t attempt = 0; !any && attempt < max_attempts; ++attempt) {
    const std::uint64_t base = (sample << 24) + attempt * ids.size();
    for (std::size_t t = 0; t < ids.size(); ++t) {
      targets[t] = ignored;
      if (!eligible(t)) continue;
      const std::uint64_t bits = rng.u64(base + t);
      const bool last_resort = attempt + 1 == max_attempts && !any;
      if ((bits & 0xffffu) >= picked_fraction && !last_resort) continue;
      any = true;
      targets[t] = ids[t];
      const auto fate = static_cast<std::uint32_t>(bits >> 16 & 0xffffu);
      if (fate < mask_fraction)
        ids[t] = vocabulary.mask;
      else if (fate < mask_fraction + random_fraction)
        ids[t] = vocabulary.first_symbol +
                 static_cast<std::int32_t>((bits >> 32) * static_cast<std::uint64_t>(vocabulary.symbols) >> 32);
    }
  }
}

}  // namespace assay::data
