#include "workloads/data/token_stream.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstring>

namespace assay::data {

namespace {

class TokenMaker : public SampleMaker {
 protected:
  explicit TokenMaker(const TokenStream& stream)
      : stream_(stream),
        raw_bytes_(static_cast<std::size_t>(stream.set->window_length() + 1) *
                   static_cast<std::size_t>(stream.set->token_bytes())) {
    if (stream.direct) file_ = File::open(stream.set->path(), true);
  }

  // The window's tokens as they are in the file: in the mapping, or read by O_DIRECT.
  const std::byte* window(std::int64_t index) {
    const std::uint64_t offset = stream_.set->offset(static_cast<std::uint64_t>(index));
    if (!stream_.direct) return stream_.set->data() + offset;
    const char* error = "";
    const std::byte* tokens = file_.try_read_range(offset, raw_bytes_, true, buffer_, error);
    if (!tokens) throw Error(fmt::format("{}: window {} cannot be read: {}", stream_.set->path(), index, error));
    return tokens;
  }

  void describe(std::int64_t index, const SampleSlot& slot) const {
    *slot.index = index;
    *slot.label = 0;
    *slot.bytes = static_cast<std::int64_t>(raw_bytes_);
  }

  const TokenStream& stream_;
  std::size_t raw_bytes_;

 private:
  File file_;
  AlignedBytes buffer_;
};

class TokenReading final : public TokenMaker {
 public:
  explicit TokenReading(const TokenStream& stream) : TokenMaker(stream), own_(raw_bytes_) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::int64_t index = stream_.order.image(position);
    const std::byte* tokens = window(index);
    if (!stream_.direct) std::memcpy(own_.data(), tokens, raw_bytes_);
    describe(index, slot);
  }

 private:
  AlignedBytes own_;
};

class TokenBatching final : public TokenMaker {
 public:
  explicit TokenBatching(const TokenStream& stream)
      : TokenMaker(stream), windows_(std::min<std::uint64_t>(stream.set->windows(), 64)) {
    pool_.reserve(windows_ * raw_bytes_);
    for (std::uint64_t w = 0; w < windows_; ++w)
      std::memcpy(pool_.data() + w * raw_bytes_, stream.set->data() + stream.set->offset(w), raw_bytes_);
  }
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::uint64_t index = stream_.order.place(position) % windows_;
    stream_.set->widen(pool_.data() + index * raw_bytes_, reinterpret_cast<std::int32_t*>(slot.data));
    describe(static_cast<std::int64_t>(index), slot);
  }

 private:
  std::uint64_t windows_;
  AlignedBytes pool_;
};

class TokenPipeline final : public TokenMaker {
 public:
  explicit TokenPipeline(const TokenStream& stream) : TokenMaker(stream) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::int64_t index = stream_.order.image(position);
    stream_.set->widen(window(index), reinterpret_cast<std::int32_t*>(slot.data));
    describe(index, slot);
  }
};

}  // namespace

std::unique_ptr<SampleMaker> make_token_reader(const TokenStream& stream) {
  return std::make_unique<TokenReading>(stream);
}
std::unique_ptr<SampleMaker> make_token_batcher(const TokenStream& stream) {
  return std::make_unique<TokenBatching>(stream);
}
std::unique_ptr<SampleMaker> make_token_pipeline(const TokenStream& stream) {
  return std::make_unique<TokenPipeline>(stream);
}

}  // namespace assay::data
