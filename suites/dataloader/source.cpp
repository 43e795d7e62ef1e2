#include "suites/dataloader/source.h"

#include "workloads/data/generated_set.h"
#include "workloads/data/image_set.h"
#include "workloads/data/token_set.h"

#include <map>
#include <mutex>
#include <utility>

namespace assay::dataloader {

namespace {

PathCheck look(const std::string& kind, const std::string& path) {
  if (path == generated_path) return {};
  const std::string as_images = data::ImageSet::problem_with(path);
  if (kind == "image") {
    if (as_images.empty()) return {};
    // A file that is no shard may be the token file of the plan's other cases.
    return {as_images, data::TokenSet::problem_with(path, window_length).empty()};
  }
  if (as_images.empty()) return {fmt::format("{}: holds images; token cases read a token file", path), true};
  return {data::TokenSet::problem_with(path, window_length), false};
}

}  // namespace

const PathCheck& check_path(const std::string& kind, const std::string& path) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, PathCheck> known;
  const std::lock_guard guard(mutex);
  const auto [found, fresh] = known.try_emplace({kind, path});
  if (fresh) found->second = look(kind, path);
  return found->second;
}

Source provide(const std::string& kind, const std::string& path, const Context& context, int threads) {
  if (path != generated_path) return {path, "files", ""};
  const bool images = kind == "image";
  const data::GeneratedSet set = images ? data::generated_images(context.cache_dir, data::default_images, threads)
                                        : data::generated_tokens(context.cache_dir);
  Source source{set.path, fmt::format("generated {}", set.sha256.substr(0, 16)), ""};
  if (!set.as_published)
    source.remark = fmt::format("the generated {} set differs from the published one{}", kind,
                                images ? ": another JPEG encoder" : "");
  return source;
}

}  // namespace assay::dataloader
