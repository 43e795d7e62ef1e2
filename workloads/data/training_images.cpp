// The user's images as a training set.
#include "workloads/data/image_stream.h"
#include "workloads/data/training_files.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace assay::data {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t one_image_in = 10;  // images are held out, one in 10, if there is no validation folder
constexpr std::uint64_t held_out_seed = 0;  // of the shuffle that chooses them
constexpr int central_numerator = 7, central_denominator = 8;

void check_labels(const ImageSet& set, const std::string& path, std::int64_t classes) {
  for (std::size_t image = 0; image < set.size(); ++image) {
    const int label = set.label(image);
    const auto fail = [&](const std::string& what) {
      throw UsageError(fmt::format("{}: image {} {}", path, set.name(image), what));
    };
    if (!set.shards() && set.name(image).find('/') == std::string::npos)
      fail("has no label: it is in no subfolder (the subfolders are the classes)");
    if (set.shards() && label == -1) fail("has no label: its sample has no .cls member with a number");
    if (label < 0 || label >= classes)
      fail(fmt::format("has label {}{}, but the model's {} classes are 0 to {}", label,
                       set.shards() ? "" : fmt::format(" (folder {})", set.classes()[static_cast<std::size_t>(label)]),
                       classes, classes - 1));
  }
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Makes validation samples: the central crop of each image.
class Central final : public SampleMaker {
 public:
  Central(const ImageSet& set, const std::vector<std::int64_t>& members, BadImages& bad, int size)
      : set_(set),
        members_(members),
        bad_(bad),
        reader_(set, false),
        pipeline_(size, best_resize_kernels()),
        bytes_(static_cast<std::size_t>(data::sample_bytes(size))) {}

  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::int64_t image = members_[static_cast<std::size_t>(position)];
    const auto bytes = reader_.read(static_cast<std::size_t>(image));
    *slot.index = image;
    *slot.label = set_.label(static_cast<std::size_t>(image));
    *slot.bytes = bytes ? static_cast<std::int64_t>(bytes->size()) : 0;
    if (bytes && pipeline_.open(*bytes) && pipeline_.run({central(), false}, reinterpret_cast<float*>(slot.data)))
      return;
    bad_.add(image, bytes ? pipeline_.error() : std::string_view(reader_.error()));
    *slot.label = ignored_target;
    std::memset(slot.data, 0, bytes_);
  }

 private:
  Crop central() const {
    const int width = pipeline_.width(), height = pipeline_.height();
    const int side = std::max(1, std::min(width, height) * central_numerator / central_denominator);
    return {(width - side) / 2, (height - side) / 2, side, side};
  }

  const ImageSet& set_;
  const std::vector<std::int64_t>& members_;
  BadImages& bad_;
  ImageReader reader_;
  CropPipeline pipeline_;
  std::size_t bytes_;
};

// The pipeline of the dataloader suite, over the members of a split.
class Cropped final : public SampleMaker {
 public:
  explicit Cropped(const ImageStream& stream) : stream_(stream), maker_(make_image_pipeline(stream_)) {}
  void make(std::int64_t position, const SampleSlot& slot) override { maker_->make(position, slot); }

 private:
  ImageStream stream_;
  std::unique_ptr<SampleMaker> maker_;
};

class TrainingImages final : public TrainingSet {
 public:
  TrainingImages(const std::string& path, int size, std::int64_t classes) : size_(size), classes_(classes) {
    const std::string train = path + "/train";
    if (!path.empty() && is_folder(train))
      for (const char* name : {"val", "validation"})
        if (is_folder(path + "/" + name)) validation_path_ = path + "/" + name;
    train_.set = ImageSet::open(validation_path_.empty() ? path : train);
    check_labels(train_.set, validation_path_.empty() ? path : train, classes);
    if (validation_path_.empty()) {
      hold_out();
      return;
    }
    validation_.set = ImageSet::open(validation_path_);
    check_classes();
    check_labels(validation_.set, validation_path_, classes);
    for (Part* part : {&train_, &validation_}) use_all(*part);
  }

  SampleKind kind() const override { return SampleKind::image; }
  std::int64_t extent() const override { return size_; }
  std::int64_t classes() const override { return classes_; }
  std::int64_t samples(Split split) const override {
    return static_cast<std::int64_t>((split == Split::train ? train_ : validation_).members.size());
  }
  std::string name() const override { return "files"; }

  std::unique_ptr<SampleMaker> maker(Split split, std::uint64_t seed) const override {
    if (split == Split::validation)
      return std::make_unique<Central>(validation_set(), validation_.members, bad_of(split), size_);
    ImageStream stream;
    stream.set = &train_.set;
    stream.order.seed = seed;
    stream.order.images = train_.members.size();
    stream.order.members = &train_.members;
    stream.size = size_;
    stream.bad = &bad_of(split);
    stream.kernels = &best_resize_kernels();
    if (damaged_seed_ == seed) stream.injected = stream.order.image(0);
    return std::make_unique<Cropped>(stream);
  }

  bool damage_first_image(std::uint64_t seed) const override {
    damaged_seed_ = seed;
    return true;
  }

  std::vector<std::string> unusable() const override {
    std::vector<std::string> lines;
    const auto add = [&](const ImageSet& set, const BadImages& bad) {
      for (const std::string& archive : set.damaged_archives()) lines.push_back(archive);
      for (const auto& [image, reason] : bad.all())
        lines.push_back(set.name(static_cast<std::size_t>(image)) + ": " + reason);
    };
    add(train_.set, bad_of(Split::train));
    if (!validation_path_.empty()) add(validation_.set, bad_of(Split::validation));
    return lines;
  }

 private:
  struct Part {
    ImageSet set;
    std::vector<std::int64_t> members;  // images of the set that belong to the split
    mutable BadImages bad;
  };

  // Without a validation folder, validation images are members of the training folder's set.
  const ImageSet& validation_set() const { return validation_path_.empty() ? train_.set : validation_.set; }
  BadImages& bad_of(Split split) const {
    return split == Split::train || validation_path_.empty() ? train_.bad : validation_.bad;
  }

  static void use_all(Part& part) {
    for (std::size_t image = 0; image < part.set.size(); ++image)
      part.members.push_back(static_cast<std::int64_t>(image));
  }

  void hold_out() {
    const std::uint64_t images = train_.set.size();
    const Shuffle shuffle(held_out_seed, 0, images);
    for (std::uint64_t place = 0; place < images; ++place)
      (place < images / one_image_in ? validation_ : train_)
          .members.push_back(static_cast<std::int64_t>(shuffle.at(place)));
    for (Part* part : {&train_, &validation_}) std::ranges::sort(part->members);
  }

  // Labels are indices into the sorted list of subfolders, so both lists must be the same.
  void check_classes() const {
    const auto& train = train_.set.classes();
    const auto& validation = validation_.set.classes();
    if (train == validation || train_.set.shards() || validation_.set.shards()) return;
    const auto [a, b] = std::mismatch(train.begin(), train.end(), validation.begin(), validation.end());
    const bool only_train = b == validation.end() || (a != train.end() && *a < *b);
    throw UsageError(fmt::format("{}: its classes differ from those of the training folder: {} is only in {}",
                                 validation_path_, only_train ? *a : *b, only_train ? "training" : "validation"));
  }

  int size_;
  std::int64_t classes_;
  std::string validation_path_;  // empty: held out of the training folder
  Part train_;
  Part validation_;
  mutable std::optional<std::uint64_t> damaged_seed_;
};

}  // namespace

std::shared_ptr<const TrainingSet> open_training_images(const std::string& path, int size, std::int64_t classes) {
  return std::make_shared<TrainingImages>(path, size, classes);
}

}  // namespace assay::data
