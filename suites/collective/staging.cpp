#include "suites/collective/staging.h"

#include <algorithm>

namespace assay::collective {

namespace {
constexpr std::size_t block_bytes = std::size_t{32} << 20;
}

Staging::Staging(Device& device) : device_(device) {
  if (device.kind() == DeviceKind::cpu) return;
  stream_ = device.make_stream();
  block_ = device.allocate(block_bytes, Memory::pinned);
}

void Staging::write(void* buffer, std::size_t elements, std::size_t element_bytes,
                    const std::function<void(void*, std::size_t, std::size_t)>& make) {
  if (!stream_) return make(buffer, 0, elements);
  const std::size_t max_elements = block_bytes / element_bytes;
  for (std::size_t first = 0; first < elements; first += max_elements) {
    const std::size_t count = std::min(max_elements, elements - first);
    make(block_.data(), first, count);
    device_.copy(static_cast<char*>(buffer) + first * element_bytes, block_.data(), count * element_bytes, *stream_);
    stream_->synchronize();
  }
}

void Staging::read(const void* buffer, std::size_t elements, std::size_t element_bytes,
                   const std::function<void(const void*, std::size_t, std::size_t)>& look) {
  if (!stream_) return look(buffer, 0, elements);
  const std::size_t max_elements = block_bytes / element_bytes;
  for (std::size_t first = 0; first < elements; first += max_elements) {
    const std::size_t count = std::min(max_elements, elements - first);
    device_.copy(block_.data(), static_cast<const char*>(buffer) + first * element_bytes, count * element_bytes,
                 *stream_);
    stream_->synchronize();
    look(block_.data(), first, count);
  }
}

}  // namespace assay::collective
