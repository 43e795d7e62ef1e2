// A set of JPEG images on disk: a folder with a subfolder per class, or tar shards in WebDataset's layout.
#pragma once

#include "workloads/data/aligned_bytes.h"
#include "workloads/data/file.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::data {

// Immutable after open(), so that threads can share it.
class ImageSet {
 public:
  // `path` is a folder or a .tar file. A folder with .tar files anywhere below it is read as shards, in sorted order;
  // any other is searched for .jpg and .jpeg files (case ignored). Labels: the index of the first-level subfolder in
  // sorted order (0 for images outside of subfolders), or the number in the sample's .cls member, -1 if there is none.
  // Follows each symbolic link once. Throws UsageError if the path is missing, unreadable or without images.
  static ImageSet open(const std::string& path);
  // Why open() would fail, or empty. Faster: stops at the first image.
  static std::string problem_with(const std::string& path);

  std::size_t size() const { return entries_.size(); }
  // The image's name in messages: the path below the set's root, or "shard.tar: member".
  std::string name(std::size_t image) const;
  int label(std::size_t image) const { return entries_[image].label; }
  // The first-level subfolders in sorted order; none for shards.
  const std::vector<std::string>& classes() const { return classes_; }
  // Whether the set consists of tar shards, with labels from .cls members.
  bool shards() const { return shards_; }
  std::uint64_t total_bytes() const { return total_bytes_; }
  // Archives that are truncated or damaged, each with the reason.
  const std::vector<std::string>& damaged_archives() const { return damaged_; }
  const std::vector<std::string>& files() const { return files_; }

 private:
  friend class ImageReader;
  struct Entry {
    std::uint32_t file;
    std::int32_t label;
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint32_t member;  // index into members_ for shards
  };

  void add_folder(const std::string& root);
  void add_shards(const std::vector<std::string>& shards);

  std::string root_;
  std::vector<std::string> files_;    // full paths
  std::vector<std::string> members_;  // names inside shards
  std::vector<Entry> entries_;
  std::vector<std::string> damaged_;
  std::vector<std::string> classes_;
  std::uint64_t total_bytes_ = 0;
  bool shards_ = false;
};

// Reads images of a set on one thread, all into the same buffer.
class ImageReader {
 public:
  // `direct` bypasses the page cache.
  ImageReader(const ImageSet& set, bool direct);

  // The image's bytes, valid until the next call; nothing, with the reason in error(), if it cannot be read.
  std::optional<std::span<const std::byte>> read(std::size_t image);
  const char* error() const { return error_; }

 private:
  const ImageSet& set_;
  bool direct_;
  std::vector<File> shards_;  // kept open; images of a folder are opened one by one
  AlignedBytes buffer_;
  const char* error_ = "";
};

}  // namespace assay::data
