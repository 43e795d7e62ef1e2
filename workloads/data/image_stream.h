// The endless stream of images and the workers that process it: each stage of the pipeline alone, and all of it.
#pragma once

#include "workloads/data/crop_pipeline.h"
#include "workloads/data/image_set.h"
#include "workloads/data/loader.h"
#include "workloads/data/shuffle.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace assay::data {

// Images that could not be used, with the reasons; shared by all workers.
class BadImages {
 public:
  void add(std::int64_t image, std::string_view reason);
  std::map<std::int64_t, std::string> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> reasons_;
};

// Maps positions to images over all epochs: position p of rank r is place p * world + r of the stream.
struct StreamOrder {
  std::uint64_t seed = 0;
  std::uint64_t images = 0;
  int rank = 0;
  int world = 1;
  const std::vector<std::int64_t>* members = nullptr;  // the `images` of the set to show; null: all

  std::uint64_t place(std::int64_t position) const {
    return static_cast<std::uint64_t>(position) * static_cast<std::uint64_t>(world) + static_cast<std::uint64_t>(rank);
  }
  std::int64_t image(std::int64_t position) const;
  // The `attempt`-th substitute (from 1) for an unusable image.
  std::int64_t substitute(std::int64_t position, int attempt) const;

 private:
  std::int64_t member(std::uint64_t place_in_epoch) const {
    return members ? (*members)[place_in_epoch] : static_cast<std::int64_t>(place_in_epoch);
  }
};

inline constexpr int max_substitutes = 15;

struct ImageStream {
  const ImageSet* set = nullptr;
  StreamOrder order;
  int size = 224;                        // height and width of the output in pixels
  bool direct = false;                   // bypass the page cache
  std::optional<std::int64_t> injected;  // the image that the fault corrupt-image cuts in half
  BadImages* bad = nullptr;
  const ResizeKernels* kernels = nullptr;

  // The image's bytes, with the fault applied.
  std::optional<std::span<const std::byte>> read(ImageReader& reader, std::int64_t image) const;
};

// Inputs of the stages that are measured from memory.
struct StageInputs {
  std::vector<std::vector<std::byte>> compressed;  // decode
  std::vector<std::int64_t> images;                // index of each image
  std::vector<DecodedCrop> crops;                  // augment
  std::vector<bool> flips;
  std::vector<AlignedBytes> samples;  // batch: normalised, (size, size, 3) f32
};

// The first `images` usable images of the stream's order, or fewer if they exceed `max_bytes`.
StageInputs load_compressed(const ImageStream& stream, std::int64_t images, std::uint64_t max_bytes);
StageInputs load_crops(const ImageStream& stream, std::int64_t images);
StageInputs load_samples(const ImageStream& stream, std::int64_t images);

// Bytes of one normalised f32 sample.
inline std::int64_t sample_bytes(int size) { return std::int64_t{size} * size * 3 * 4; }

// Workers for one stage each; stream and inputs must outlive them.
std::unique_ptr<SampleMaker> make_image_reader(const ImageStream& stream);
std::unique_ptr<SampleMaker> make_image_decoder(const ImageStream& stream, const StageInputs& inputs);
std::unique_ptr<SampleMaker> make_image_augmenter(const ImageStream& stream, const StageInputs& inputs);
std::unique_ptr<SampleMaker> make_image_batcher(const ImageStream& stream, const StageInputs& inputs);
// Its make() throws Error if an image and all its substitutes are unusable.
std::unique_ptr<SampleMaker> make_image_pipeline(const ImageStream& stream);

}  // namespace assay::data
