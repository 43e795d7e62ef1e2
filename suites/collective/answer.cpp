#include "suites/collective/answer.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstring>

namespace assay::collective {

namespace {

constexpr std::size_t period = 65521;
constexpr std::size_t max_described = 3;

// The integer x as an element; i64 carries it in both halves, so that losing either is noticed.
template <typename T>
T element(std::int64_t x) {
  return static_cast<T>(x);
}
template <>
bf16 element<bf16>(std::int64_t x) {
  return bf16(static_cast<float>(x));
}
template <>
std::int64_t element<std::int64_t>(std::int64_t x) {
  return x * 0x100000001;
}

std::string word(float x) { return fmt::format("{}", x); }
std::string word(bf16 x) { return fmt::format("{}", static_cast<float>(x)); }
std::string word(std::int64_t x) { return fmt::format("{:#x}", x); }

// Integers and sums up to this are exact.
std::int64_t exact_up_to(DType dtype) { return dtype == DType::bf16 ? 256 : 1 << 20; }

std::uint64_t mix(std::uint64_t x) {  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
class TypedAnswer final : public Answer {
 public:
  TypedAnswer(Op op, DType dtype, const Layout& layout, int rank, int ranks, std::uint64_t seed,
              std::optional<int> from)
      : op_(op),
        layout_(layout),
        rank_(rank),
        ranks_(ranks),
        seed_(seed),
        from_(op == Op::broadcast || op == Op::send_recv
                  ? from.value_or(op == Op::broadcast ? 0 : (rank + ranks - 1) % ranks)
                  : -1),
        span_(static_cast<std::uint64_t>(std::min<std::int64_t>(exact_up_to(dtype) / ranks, 999)) + 1) {
    own_ = to_elements(table(rank));
    if (reduces(op)) {
      std::vector<std::int64_t> sum(period, 0);
      for (int r = 0; r < ranks; ++r) {
        const std::vector<std::int64_t> part = table(r);
        for (std::size_t i = 0; i < period; ++i) sum[i] += part[i];
      }
      expected_ = to_elements(sum);
    } else if (from_ >= 0) {
      given_.push_back(to_elements(table(from_)));
    } else {
      for (int r = 0; r < ranks; ++r) given_.push_back(to_elements(table(r)));
    }
  }

  void fill_send(void* part, std::size_t first, std::size_t count) const override {
    fill(static_cast<T*>(part), own_, first, count);
  }

  void fill_in_place(void* part, std::size_t first, std::size_t count) const override {
    if (op_ != Op::all_gather) return fill_send(part, first, count);
    std::memset(part, 0xff, count * sizeof(T));
    const std::size_t mine = static_cast<std::size_t>(rank_) * layout_.count;
    const std::size_t begin = std::max(first, mine), end = std::min(first + count, mine + layout_.count);
    if (begin < end) fill(static_cast<T*>(part) + (begin - first), own_, begin - mine, end - begin);
  }

  void check_send(Wrong& wrong, const void* part, std::size_t first, std::size_t count) const override {
    compare(wrong, "input element", static_cast<const T*>(part), first, own_, first, count);
  }

  void check_receive(Wrong& wrong, const void* part, bool in_place, std::size_t first,
                     std::size_t count) const override {
    const std::size_t result = result_at(in_place);
    const bool skewed = op_ == Op::all_to_all_v;
    const std::size_t block = layout_.count * (skewed ? skewed_units(rank_, ranks_) : 1);
    // Where this rank's block begins in the inputs of others.
    std::size_t mine = static_cast<std::size_t>(rank_) * layout_.count;
    if (skewed) mine = 0;
    for (int to = 0; skewed && to < rank_; ++to) mine += layout_.count * skewed_units(to, ranks_);
    // Compares the block that begins at element `at` of the result, as far as it is in this part.
    const auto expect = [&](std::size_t at, const std::vector<T>& right, std::size_t phase) {
      const std::size_t begin = std::max(first, result + at), end = std::min(first + count, result + at + block);
      if (begin < end)
        compare(wrong, "element", static_cast<const T*>(part) + (begin - first), begin - result, right,
                phase + (begin - result - at), end - begin);
    };
    switch (op_) {
      case Op::all_reduce: expect(0, expected_, 0); break;
      case Op::reduce_scatter: expect(0, expected_, mine); break;
      case Op::broadcast:
      case Op::send_recv: expect(0, given_.front(), 0); break;
      case Op::all_gather:
      case Op::all_to_all:
      case Op::all_to_all_v:
        for (std::size_t r = 0; r < given_.size(); ++r) expect(r * block, given_[r], op_ == Op::all_gather ? 0 : mine);
        break;
    }
  }

  void corrupt(void* element) const override { static_cast<unsigned char*>(element)[sizeof(T) - 1] ^= 0x01; }
  std::size_t corruptible(bool in_place) const override { return result_at(in_place) + layout_.count / 2; }

 private:
  std::size_t result_at(bool in_place) const {
    return in_place && op_ == Op::reduce_scatter ? static_cast<std::size_t>(rank_) * layout_.count : 0;
  }

  std::vector<std::int64_t> table(int rank) const {
    std::vector<std::int64_t> values(period);
    const std::uint64_t stream = mix(seed_ * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) + 1);
    for (std::size_t i = 0; i < period; ++i) values[i] = static_cast<std::int64_t>(mix(stream + i) % span_);
    return values;
  }
  static std::vector<T> to_elements(const std::vector<std::int64_t>& values) {
    std::vector<T> elements(values.size());
    std::ranges::transform(values, elements.begin(), [](std::int64_t x) { return element<T>(x); });
    return elements;
  }

  // Splits `count` elements that start at element `phase` of the pattern into runs that do not wrap:
  // fn(first element, pattern index, length).
  template <typename F>
  static void in_runs(std::size_t phase, std::size_t count, const F& fn) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t at = (phase + done) % period;
      const std::size_t run = std::min(period - at, count - done);
      fn(done, at, run);
      done += run;
    }
  }
  static void fill(T* data, const std::vector<T>& pattern, std::size_t phase, std::size_t count) {
    in_runs(phase, count, [&](std::size_t done, std::size_t at, std::size_t run) {
      std::copy_n(pattern.data() + at, run, data + done);
    });
  }
  // `first` is the index of data[0] in messages.
  static void compare(Wrong& wrong, const char* what, const T* data, std::size_t first, const std::vector<T>& pattern,
                      std::size_t phase, std::size_t count) {
    in_runs(phase, count, [&](std::size_t done, std::size_t at, std::size_t run) {
      const T* got = data + done;
      if (std::memcmp(got, pattern.data() + at, run * sizeof(T)) == 0) return;
      for (std::size_t i = 0; i < run; ++i) {
        if (std::memcmp(got + i, pattern.data() + at + i, sizeof(T)) == 0) continue;
        if (wrong.count++ < max_described)
          wrong.detail.push_back(
              fmt::format("{} {} is {}, not {}", what, first + done + i, word(got[i]), word(pattern[at + i])));
      }
    });
  }

  Op op_;
  Layout layout_;
  int rank_, ranks_;
  std::uint64_t seed_;
  int from_;                           // the rank whose elements arrive; -1: all
  std::uint64_t span_;                 // values are 0 to span - 1
  std::vector<T> own_;                 // this rank's input, one period
  std::vector<T> expected_;            // sums over the ranks
  std::vector<std::vector<T>> given_;  // if nothing is summed: inputs by rank, or of `from_` alone
};

}  // namespace

int max_ranks(DType dtype) { return static_cast<int>(exact_up_to(dtype)); }

std::unique_ptr<Answer> make_answer(Op op, DType dtype, const Layout& layout, int rank, int ranks, std::uint64_t seed,
                                    std::optional<int> from) {
  switch (dtype) {
    case DType::f32: return std::make_unique<TypedAnswer<float>>(op, dtype, layout, rank, ranks, seed, from);
    case DType::bf16: return std::make_unique<TypedAnswer<bf16>>(op, dtype, layout, rank, ranks, seed, from);
    case DType::i64: return std::make_unique<TypedAnswer<std::int64_t>>(op, dtype, layout, rank, ranks, seed, from);
    default: throw Error(fmt::format("collective: there is no reference answer for {}", assay::name_of(dtype)));
  }
}

}  // namespace assay::collective
