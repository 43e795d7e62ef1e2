// Generated data sets, so that no download is needed: cached, hashed, and regenerated if damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace assay::data {

struct GeneratedSet {
  std::string path;    // a folder of images in class subfolders, or a token file
  std::string sha256;  // SHA-256 of its manifest SHA256SUMS, which has the hashes of all files (for sha256sum -c)
  bool as_published = false;     // whether it equals the hash published below
  double generated_seconds = 0;  // 0 if it was in the cache
};

inline constexpr int default_images = 256;
inline constexpr std::uint64_t default_tokens = std::uint64_t{1} << 24;  // 32 MiB of uint16
inline constexpr int token_vocabulary = 50257;

// The manifest hashes of the default sets, with images encoded by libjpeg-turbo 2.1.5. Other encoders may differ.
inline constexpr const char* published_images_sha256 =
    "bbfdf38a85adba72d9e7838edc2a84dcea7cbd17d67578d59385f220e466144b";
inline constexpr const char* published_tokens_sha256 =
    "ab19941853f9c66667ec35fff5a3e151ff87a64194f6a315e93286f753809fa2";

// The set below `cache_dir`. If it is missing or a file's hash does not match, `threads` threads generate it and one
// rename puts it in place; other processes wait. Throws Error if the folder cannot be written.
GeneratedSet generated_images(const std::filesystem::path& cache_dir, int count = default_images, int threads = 1);
// Uniform tokens below token_vocabulary, as uint16.
GeneratedSet generated_tokens(const std::filesystem::path& cache_dir, std::uint64_t count = default_tokens);

}  // namespace assay::data
