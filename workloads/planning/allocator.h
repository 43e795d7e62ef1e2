// What PyTorch's caching allocator reserves of a GPU's memory for a sequence of tensors.
#pragma once

#include "workloads/planning/eager.h"

#include <vector>

namespace assay::planning {

// The most bytes in segments at once. By the constants and rules of c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.x)
// with its default settings: each stream has segments of its own; sizes are rounded to 512 bytes; tensors up to 1 MiB
// lie in segments of 2 MiB, up to 10 MiB in segments of 20 MiB, larger ones in their own, rounded to 2 MiB; the
// smallest free block that is large enough is taken and split; free neighbours join; segments are kept. PyTorch gives
// unused segments back before it fails, so a device that has less than this may still do.
double reserved_bytes(const std::vector<Heap::Event>& events);

}  // namespace assay::planning
