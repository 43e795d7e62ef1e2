#include "workloads/data/image_set.h"

#include "workloads/data/tar_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include <sys/stat.h>

namespace assay::data {

namespace {

namespace fs = std::filesystem;

bool ends_with(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  return std::equal(ending.begin(), ending.end(), name.end() - static_cast<std::ptrdiff_t>(ending.size()),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

bool is_jpeg(std::string_view name) { return ends_with(name, ".jpg") || ends_with(name, ".jpeg"); }
bool is_tar(std::string_view name) { return ends_with(name, ".tar"); }
bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

struct Found {
  std::string path;
  std::uint64_t bytes;
};

// Finds up to `enough` regular files below `root` that satisfy `wanted`. Skips hidden names and enters a folder that is
// reachable twice (by a link) once.
template <typename Wanted>
void walk(const fs::path& root, const Wanted& wanted, std::size_t enough, std::vector<Found>& found) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::vector<fs::path> folders{root};
  while (!folders.empty() && found.size() < enough) {
    const fs::path folder = std::move(folders.back());
    folders.pop_back();
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0 || !seen.emplace(status.st_dev, status.st_ino).second) continue;
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    if (error) throw UsageError(fmt::format("{}: cannot read this folder: {}", folder.string(), error.message()));
    for (const fs::directory_entry& entry : entries) {
      if (is_hidden(entry.path())) continue;
      if (entry.is_directory(error))
        folders.push_back(entry.path());
      else if (wanted(entry.path().native()) && entry.is_regular_file(error))
        found.push_back({entry.path().native(), entry.file_size(error)});
      if (found.size() >= enough) break;
    }
  }
  std::ranges::sort(found, {}, &Found::path);
}

// WebDataset: the members of a sample share the name up to the first dot of the last component.
std::pair<std::string_view, std::string_view> split_sample(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot)};
}

int read_label(const File& file, const TarMember& member) {
  char text[32] = {};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(member.bytes, sizeof text - 1));
  if (file.try_read(text, count, member.offset) != static_cast<std::int64_t>(count)) return -1;
  const char* begin = text;
  while (*begin == ' ' || *begin == '\n' || *begin == '\t') ++begin;
  int label = -1;
  std::from_chars(begin, text + count, label);
  return label;
}

UsageError no_images(const std::string& path) {
  return UsageError(fmt::format("{}: holds no images (.jpg or .jpeg files, or .tar shards)", path));
}

fs::file_status status_of(const std::string& path) {
  if (path.empty()) throw UsageError("the path of the data is empty");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw UsageError(fmt::format("{}: no such file or folder", path));
  if (error) throw UsageError(fmt::format("{}: cannot be read: {}", path, error.message()));
  return status;
}

}  // namespace

ImageSet ImageSet::open(const std::string& path) {
  ImageSet set;
  set.root_ = path;
  while (set.root_.size() > 1 && set.root_.back() == '/') set.root_.pop_back();
  if (fs::is_directory(status_of(path))) {
    std::vector<Found> shards;
    walk(path, is_tar, SIZE_MAX, shards);
    std::vector<std::string> names;
    for (Found& shard : shards) names.push_back(std::move(shard.path));
    if (names.empty())
      set.add_folder(set.root_);
    else
      set.add_shards(names);
  } else if (is_tar(path)) {
    set.add_shards({path});
  } else {
    throw UsageError(fmt::format("{}: neither a folder nor a .tar shard", path));
  }
  if (set.entries_.empty()) {
    if (!set.damaged_.empty())
      throw UsageError(fmt::format("{}: no image can be read: {}", path, set.damaged_.front()));
    throw no_images(path);
  }
  return set;
}

std::string ImageSet::problem_with(const std::string& path) {
  try {
    const bool folder = fs::is_directory(status_of(path));
    if (!folder) return open(path), std::string();
    std::vector<Found> found;
    walk(
        path, [](std::string_view name) { return is_jpeg(name) || is_tar(name); }, 1, found);
    if (found.empty()) return no_images(path).what();
    if (is_tar(found.front().path)) return open(path), std::string();
    File::open(found.front().path);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

void ImageSet::add_folder(const std::string& root) {
  std::vector<Found> found;
  walk(root, is_jpeg, SIZE_MAX, found);
  const auto subfolder = [&](const std::string& path) {
    const std::string_view rest = std::string_view(path).substr(root.size() + (root == "/" ? 0 : 1));
    const std::size_t slash = rest.find('/');
    return std::string(slash == std::string_view::npos ? std::string_view{} : rest.substr(0, slash));
  };
  std::set<std::string> classes;
  for (const Found& image : found)
    if (std::string name = subfolder(image.path); !name.empty()) classes.insert(std::move(name));
  classes_.assign(classes.begin(), classes.end());
  for (Found& image : found) {
    const std::string name = subfolder(image.path);
    const auto label = name.empty() ? 0 : std::distance(classes.begin(), classes.find(name));
    entries_.push_back(
        {static_cast<std::uint32_t>(files_.size()), static_cast<std::int32_t>(label), 0, image.bytes, 0});
    total_bytes_ += image.bytes;
    files_.push_back(std::move(image.path));
  }
}

void ImageSet::add_shards(const std::vector<std::string>& shards) {
  shards_ = true;
  for (const std::string& shard : shards) {
    const TarIndex index = read_tar_index(shard);
    if (!index.problem.empty()) damaged_.push_back(fmt::format("{}: {}", shard, index.problem));
    const File file = File::open(shard);
    const auto file_number = static_cast<std::uint32_t>(files_.size());
    files_.push_back(shard);
    for (std::size_t begin = 0; begin < index.members.size();) {
      const std::string_view base = split_sample(index.members[begin].name).first;
      const TarMember* image = nullptr;
      int label = -1;
      std::size_t end = begin;
      for (; end < index.members.size(); ++end) {
        const auto [stem, extension] = split_sample(index.members[end].name);
        if (stem != base) break;
        if (is_jpeg(extension))
          image = &index.members[end];
        else if (ends_with(extension, ".cls"))
          label = read_label(file, index.members[end]);
      }
      if (image) {
        entries_.push_back(
            {file_number, label, image->offset, image->bytes, static_cast<std::uint32_t>(members_.size())});
        members_.push_back(image->name);
        total_bytes_ += image->bytes;
      }
      begin = end;
    }
  }
}

std::string ImageSet::name(std::size_t image) const {
  const Entry& entry = entries_[image];
  const std::string& file = files_[entry.file];
  std::string shown = file.starts_with(root_ + "/") ? file.substr(root_.size() + 1) : file;
  return shards_ ? fmt::format("{}: {}", shown, members_[entry.member]) : shown;
}

ImageReader::ImageReader(const ImageSet& set, bool direct) : set_(set), direct_(direct) {
  if (set.shards_)
    for (const std::string& shard : set.files_) shards_.push_back(File::open(shard, direct));
}

std::optional<std::span<const std::byte>> ImageReader::read(std::size_t image) {
  const ImageSet::Entry& entry = set_.entries_[image];
  File own;
  if (!set_.shards_) {
    own = File::try_open(set_.files_[entry.file].c_str(), direct_);
    if (!own) return error_ = std::strerror(errno), std::nullopt;
  }
  const File& file = set_.shards_ ? shards_[entry.file] : own;
  const std::byte* bytes = file.try_read_range(entry.offset, entry.bytes, direct_, buffer_, error_);
  if (!bytes) return std::nullopt;
  return std::span(bytes, entry.bytes);
}

}  // namespace assay::data
