// Memory for libjpeg-turbo from reused blocks. Its own manager calls malloc and free several times per image, and large
// blocks are then fresh pages that the kernel must clear.
#pragma once

#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

namespace assay::data {

// Replaces the memory manager of a decompressor for its lifetime. Image memory comes from a list of blocks that the
// next image reuses; more than `limit_bytes` for one image gives libjpeg's out-of-memory error.
class JpegMemory {
 public:
  explicit JpegMemory(std::size_t limit_bytes);
  ~JpegMemory();
  JpegMemory(const JpegMemory&) = delete;
  JpegMemory& operator=(const JpegMemory&) = delete;

  // Call once, right after jpeg_create_decompress; this object must outlive `info`.
  void install(j_common_ptr info);
  // Call before jpeg_destroy: restores libjpeg's own manager.
  void remove(j_common_ptr info);

 private:
  struct Block {
    Block* next;
    std::size_t bytes;
  };
  struct Pool {
    Block* first = nullptr;
    Block* current = nullptr;
    std::size_t used = 0;   // bytes used of the current block
    std::size_t total = 0;  // bytes of all blocks in use before the current one
  };
  struct Manager : jpeg_memory_mgr {
    JpegMemory* self;
  };

  static JpegMemory& of(j_common_ptr info) { return *static_cast<Manager*>(info->mem)->self; }
  void* allocate(j_common_ptr info, int pool, std::size_t bytes);
  void reset(int pool);
  static void* alloc(j_common_ptr info, int pool, std::size_t bytes);
  static JSAMPARRAY alloc_sarray(j_common_ptr info, int pool, JDIMENSION width, JDIMENSION rows);
  static JBLOCKARRAY alloc_barray(j_common_ptr info, int pool, JDIMENSION width, JDIMENSION rows);
  static jvirt_sarray_ptr request_virt_sarray(j_common_ptr, int, boolean, JDIMENSION, JDIMENSION, JDIMENSION);
  static jvirt_barray_ptr request_virt_barray(j_common_ptr, int, boolean, JDIMENSION, JDIMENSION, JDIMENSION);
  static void realize_virt_arrays(j_common_ptr) {}
  static JSAMPARRAY access_virt_sarray(j_common_ptr, jvirt_sarray_ptr, JDIMENSION, JDIMENSION, boolean);
  static JBLOCKARRAY access_virt_barray(j_common_ptr, jvirt_barray_ptr, JDIMENSION, JDIMENSION, boolean);
  static void free_pool(j_common_ptr info, int pool);
  static void self_destruct(j_common_ptr) {}

  Manager manager_{};
  jpeg_memory_mgr* original_ = nullptr;
  Pool pools_[JPOOL_NUMPOOLS];
  std::size_t limit_bytes_;
};

}  // namespace assay::data
