// A growable buffer, aligned for vector loads, that keeps its memory for reuse by the next sample.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace assay::data {

// 64-byte aligned storage. It loses its content when it grows and never shrinks, so that a stream of samples soon stops
// allocating.
class AlignedBytes {
 public:
  static constexpr std::size_t alignment = 64;

  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t bytes) { reserve(bytes); }

  // Makes it at least `bytes` long. Grows by at least a half, so growth is rare.
  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    const std::size_t wanted = bytes > capacity_ + capacity_ / 2 ? bytes : capacity_ + capacity_ / 2;
    const std::size_t rounded = (wanted + alignment - 1) / alignment * alignment;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
    capacity_ = data_ ? rounded : 0;
    if (!data_) throw std::bad_alloc();
  }

  std::byte* data() const { return data_.get(); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }
  std::size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t capacity_ = 0;
};

}  // namespace assay::data
