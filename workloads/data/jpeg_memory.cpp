// libjpeg's memory manager on reused blocks. Virtual arrays, which libjpeg can swap to disk, always stay in memory.
#include "workloads/data/jpeg_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <jerror.h>

// Declared by libjpeg; the memory manager defines their content.
struct jvirt_sarray_control {
  JSAMPARRAY rows;
};
struct jvirt_barray_control {
  JBLOCKARRAY rows;
};

namespace assay::data {

namespace {

// The SIMD code reads and writes whole vectors: rows are vector-aligned and padded by two of the widest.
constexpr std::size_t row_alignment = 64;
constexpr std::size_t block_bytes = 256 * 1024;

std::size_t round_up(std::size_t bytes) { return (bytes + row_alignment - 1) / row_alignment * row_alignment; }

}  // namespace

JpegMemory::JpegMemory(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

JpegMemory::~JpegMemory() {
  for (Pool& pool : pools_) {
    for (Block* block = pool.first; block;) {
      Block* next = block->next;
      std::free(block);
      block = next;
    }
  }
}

void JpegMemory::install(j_common_ptr info) {
  original_ = info->mem;
  manager_.alloc_small = alloc;
  manager_.alloc_large = alloc;
  manager_.alloc_sarray = alloc_sarray;
  manager_.alloc_barray = alloc_barray;
  manager_.request_virt_sarray = request_virt_sarray;
  manager_.request_virt_barray = request_virt_barray;
  manager_.realize_virt_arrays = realize_virt_arrays;
  manager_.access_virt_sarray = access_virt_sarray;
  manager_.access_virt_barray = access_virt_barray;
  manager_.free_pool = free_pool;
  manager_.self_destruct = self_destruct;
  manager_.max_memory_to_use = original_->max_memory_to_use;
  manager_.max_alloc_chunk = original_->max_alloc_chunk;
  manager_.self = this;
  info->mem = &manager_;
}

void JpegMemory::remove(j_common_ptr info) { info->mem = original_; }

void* JpegMemory::allocate(j_common_ptr info, int pool_id, std::size_t bytes) {
  if (pool_id < 0 || pool_id >= JPOOL_NUMPOOLS) ERREXIT1(info, JERR_BAD_POOL_ID, pool_id);
  Pool& pool = pools_[pool_id];
  bytes = round_up(bytes);
  if (bytes > limit_bytes_ || pool.total + pool.used + bytes > limit_bytes_) ERREXIT1(info, JERR_OUT_OF_MEMORY, 1);
  while (!pool.current || pool.used + bytes > pool.current->bytes) {
    Block** next = pool.current ? &pool.current->next : &pool.first;
    if (!*next || (*next)->bytes < bytes) {
      const std::size_t size = std::max(bytes, block_bytes);
      auto* fresh = static_cast<Block*>(std::aligned_alloc(row_alignment, round_up(sizeof(Block)) + size));
      if (!fresh) ERREXIT1(info, JERR_OUT_OF_MEMORY, 2);
      fresh->next = *next;
      fresh->bytes = size;
      *next = fresh;
    }
    if (pool.current) pool.total += pool.used;
    pool.current = *next;
    pool.used = 0;
  }
  void* result = reinterpret_cast<std::byte*>(pool.current) + round_up(sizeof(Block)) + pool.used;
  pool.used += bytes;
  return result;
}

void JpegMemory::reset(int pool_id) {
  Pool& pool = pools_[pool_id];
  pool.current = nullptr;
  pool.used = 0;
  pool.total = 0;
}

void* JpegMemory::alloc(j_common_ptr info, int pool, std::size_t bytes) { return of(info).allocate(info, pool, bytes); }

JSAMPARRAY JpegMemory::alloc_sarray(j_common_ptr info, int pool, JDIMENSION width, JDIMENSION rows) {
  JpegMemory& memory = of(info);
  const std::size_t stride = round_up(std::size_t{width} * sizeof(JSAMPLE) + row_alignment);
  auto* result = static_cast<JSAMPARRAY>(memory.allocate(info, pool, rows * sizeof(JSAMPROW)));
  auto* samples = static_cast<JSAMPLE*>(memory.allocate(info, pool, stride * rows));
  for (JDIMENSION row = 0; row < rows; ++row) result[row] = samples + row * stride;
  return result;
}

JBLOCKARRAY JpegMemory::alloc_barray(j_common_ptr info, int pool, JDIMENSION width, JDIMENSION rows) {
  JpegMemory& memory = of(info);
  auto* result = static_cast<JBLOCKARRAY>(memory.allocate(info, pool, rows * sizeof(JBLOCKROW)));
  auto* blocks = static_cast<JBLOCK*>(memory.allocate(info, pool, std::size_t{width} * rows * sizeof(JBLOCK)));
  for (JDIMENSION row = 0; row < rows; ++row) result[row] = blocks + std::size_t{row} * width;
  return result;
}

jvirt_sarray_ptr JpegMemory::request_virt_sarray(j_common_ptr info, int pool, boolean zero, JDIMENSION width,
                                                 JDIMENSION rows, JDIMENSION) {
  auto* result = static_cast<jvirt_sarray_ptr>(of(info).allocate(info, pool, sizeof(jvirt_sarray_control)));
  result->rows = alloc_sarray(info, pool, width, rows);
  if (zero)
    for (JDIMENSION row = 0; row < rows; ++row) std::memset(result->rows[row], 0, width * sizeof(JSAMPLE));
  return result;
}

jvirt_barray_ptr JpegMemory::request_virt_barray(j_common_ptr info, int pool, boolean zero, JDIMENSION width,
                                                 JDIMENSION rows, JDIMENSION) {
  auto* result = static_cast<jvirt_barray_ptr>(of(info).allocate(info, pool, sizeof(jvirt_barray_control)));
  result->rows = alloc_barray(info, pool, width, rows);
  if (zero && rows) std::memset(result->rows[0], 0, std::size_t{width} * rows * sizeof(JBLOCK));
  return result;
}

JSAMPARRAY JpegMemory::access_virt_sarray(j_common_ptr, jvirt_sarray_ptr array, JDIMENSION start, JDIMENSION, boolean) {
  return array->rows + start;
}

JBLOCKARRAY JpegMemory::access_virt_barray(j_common_ptr, jvirt_barray_ptr array, JDIMENSION start, JDIMENSION,
                                           boolean) {
  return array->rows + start;
}

void JpegMemory::free_pool(j_common_ptr info, int pool) {
  if (pool < 0 || pool >= JPOOL_NUMPOOLS) ERREXIT1(info, JERR_BAD_POOL_ID, pool);
  of(info).reset(pool);
}

}  // namespace assay::data
