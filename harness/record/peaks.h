// Peaks that `peak` cases of the same run measured: the roof for `of_peak` if no hardware sheet applies.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

struct Record;

struct MeasuredPeak {
  std::string key;       // the key of the `peak` case
  std::string dtype;     // f32, int8, ... as in keys
  std::string isa;       // the one that ran: avx512, avx2, amx, ...
  bool fastest = false;  // isa=auto: the fastest that the CPU has for the dtype
  int ranks = 1;         // running at once
  int threads = 1;       // per rank
  double rate = 0;       // FLOP/s of one rank

  static void members(auto& self, auto& io) {
    io.required("key", self.key), io.required("dtype", self.dtype), io.required("isa", self.isa);
    io.required("fastest", self.fastest), io.required("ranks", self.ranks), io.required("threads", self.threads);
    io.required("rate", self.rate);
  }
};

// The peak in a finished record; nullopt unless it is of a `peak` case whose checks passed.
std::optional<MeasuredPeak> measured_peak(const Record& record);

// The peak for a dtype at these ranks and threads: that of the fastest instruction set, else that of `isa`. The last
// measurement counts; null if there is none.
const MeasuredPeak* find_peak(std::span<const MeasuredPeak> peaks, std::string_view dtype, std::string_view isa,
                              int ranks, int threads);

}  // namespace assay
