// Sanitizers replace malloc; they offer a hook instead.
#include "tests/unit/data/allocations.h"

#include <atomic>
#include <cstddef>

// In the runtime of every sanitizer; GCC does not install the header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                                         void (*on_free)(const volatile void*));

namespace {

std::atomic<std::uint64_t> count{0};
const int installed = __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t) { ++count; },
                                                                [](const volatile void*) {});

}  // namespace

namespace assay::data::test {
std::uint64_t allocations() { return installed ? count.load() : 0; }
}  // namespace assay::data::test
