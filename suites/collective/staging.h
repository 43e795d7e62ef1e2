// Host code's way to a buffer of the device: directly where they share memory, else block by block through pinned
// memory.
#pragma once

#include "harness/device/device.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace assay::collective {

class Staging {
 public:
  // The device must outlive this.
  explicit Staging(Device& device);

  // make(part, first, count): elements `first` to `first + count` of the buffer are to be written at `part`.
  void write(void* buffer, std::size_t elements, std::size_t element_bytes,
             const std::function<void(void* part, std::size_t first, std::size_t count)>& make);
  // look(part, first, count): they lie at `part`; what is changed there is lost.
  void read(const void* buffer, std::size_t elements, std::size_t element_bytes,
            const std::function<void(const void* part, std::size_t first, std::size_t count)>& look);

 private:
  Device& device_;
  std::unique_ptr<Stream> stream_;
  Buffer block_;  // empty where the host reaches the device's memory
};

}  // namespace assay::collective
