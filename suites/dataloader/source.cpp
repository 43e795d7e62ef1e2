#include "suites/dataloader/source.h"

#include "harness/core/units.h"
#include "workloads/data/file.h"
#include "workloads/data/generated_set.h"
#include "workloads/data/image_set.h"
#include "workloads/data/token_set.h"

#include <mutex>

namespace assay::dataloader {

namespace {

bool named_like_tokens(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return ending == ".bin" || ending == ".u16" || ending == ".u32" || ending == ".uint16" || ending == ".uint32";
}

PathCheck inspect(Kind kind, const std::string& path) {
  if (path == generated_path) return {};
  const std::string as_images = data::ImageSet::problem_with(path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {as_images, false};  // the same message for both kinds
  if (kind == Kind::image) {
    if (as_images.empty()) return {};
    // A file that is no shard may be the token file of the plan's other cases. Any file could be one: go by its name.
    return {as_images, named_like_tokens(path) && data::TokenSet::problem_with(path, window_length).empty()};
  }
  if (as_images.empty()) return {fmt::format("{}: holds images; token cases read a token file", path), true};
  if (path.ends_with(".tar")) return {as_images, false};
  return {data::TokenSet::problem_with(path, window_length), false};
}

}  // namespace

const PathCheck& check_path(Kind kind, const std::string& path) {
  static std::mutex mutex;
  static std::map<std::pair<Kind, std::string>, PathCheck> known;
  const std::lock_guard guard(mutex);
  const auto [found, fresh] = known.try_emplace({kind, path});
  if (fresh) found->second = inspect(kind, path);
  return found->second;
}

Source provide(Kind kind, const std::string& path, const Context& context, int threads) {
  if (path != generated_path) return {path, "files", ""};
  const bool images = kind == Kind::image;
  const data::GeneratedSet set = images
                                     ? data::generated_images(context.inputs.cache_dir, data::default_images, threads)
                                     : data::generated_tokens(context.inputs.cache_dir);
  Source source{set.path, fmt::format("generated {}", set.sha256.substr(0, 16)), ""};
  if (!set.as_published)
    source.remark = fmt::format("the generated {} set differs from the published one{}", word_of(kind),
                                images ? ": another JPEG encoder" : "");
  return source;
}

std::optional<std::string> not_warm(std::uint64_t bytes) {
  const std::uint64_t room = data::page_cache_capacity();
  if (room == 0 || bytes <= room) return std::nullopt;
  return fmt::format("cache=warm: {} of data do not fit into the {} of memory that are free (cache=cold measures them)",
                     format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(room)));
}

void flag_eviction(const std::vector<std::string>& files, Context& context) {
  constexpr std::size_t max_files = 4096;
  const data::Residency held = data::residency(files, max_files);
  if (held.fraction >= 0.99) return;
  context.outputs.flags.push_back(fmt::format("the page cache held {:.1f} % of the data ({} of {} files checked)",
                                              100 * held.fraction, held.sampled, files.size()));
}

}  // namespace assay::dataloader
