// Host access to a device buffer: directly if host and device share memory, else block by block through pinned memory.
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

  // make(part, first, count) writes elements `first` to `first + count` of the buffer to `part`.
  void write(void* buffer, std::size_t elements, std::size_t element_bytes,
             const std::function<void(void* part, std::size_t first, std::size_t count)>& make);
  // look(part, first, count) reads them at `part`; changes made there are lost.
  void read(const void* buffer, std::size_t elements, std::size_t element_bytes,
            const std::function<void(const void* part, std::size_t first, std::size_t count)>& look);

 private:
  Device& device_;
  std::unique_ptr<Stream> stream_;
  Buffer block_;  // empty if the host reaches device memory
};

}  // namespace assay::collective
