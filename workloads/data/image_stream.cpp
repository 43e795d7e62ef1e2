#include "workloads/data/image_stream.h"

#include "harness/core/error.h"

#include <cstring>

namespace assay::data {

void BadImages::add(std::int64_t image, std::string_view reason) {
  const std::lock_guard guard(mutex_);
  if (!reasons_.contains(image)) reasons_.emplace(image, reason);
}

std::map<std::int64_t, std::string> BadImages::all() const {
  const std::lock_guard guard(mutex_);
  return reasons_;
}

std::int64_t StreamOrder::image(std::int64_t position) const {
  const std::uint64_t at = place(position);
  return member(Shuffle(seed, at / images, images).at(at % images));
}

std::int64_t StreamOrder::substitute(std::int64_t position, int attempt) const {
  const std::uint64_t draw = place(position) * (max_substitutes + 1) + static_cast<std::uint64_t>(attempt);
  return member(Rng(seed, "substitute image").below(draw, images));
}

std::optional<std::span<const std::byte>> ImageStream::read(ImageReader& reader, std::int64_t image) const {
  auto bytes = reader.read(static_cast<std::size_t>(image));
  if (bytes && injected == image) return bytes->first(bytes->size() / 2);
  return bytes;
}

namespace {

// Calls use(bytes, image) for images of the stream's first epoch until it has accepted `images` of them.
template <typename Use>
void gather(const ImageStream& stream, std::int64_t images, const Use& use) {
  ImageReader reader(*stream.set, false);
  std::int64_t used = 0;
  const auto places = static_cast<std::int64_t>(stream.order.images);
  for (std::int64_t position = 0; position < places && used < images; ++position) {
    const std::int64_t image = stream.order.image(position);
    const auto bytes = stream.read(reader, image);
    if (!bytes)
      stream.bad->add(image, reader.error());
    else if (use(*bytes, image))
      ++used;
  }
  if (used == 0) {
    const auto bad = stream.bad->all();
    throw Error(fmt::format("no image can be used{}", bad.empty() ? "" : "; the first: " + bad.begin()->second));
  }
}

Augmentation augmentation_of(const ImageStream& stream, const Rng& rng, std::int64_t position,
                             const CropPipeline& pipeline) {
  return draw_augmentation(rng, stream.order.place(position), pipeline.width(), pipeline.height());
}

// The first `images` usable images, each opened and augmented; make(pipeline, augmentation) returns false on failure.
template <typename Make>
void gather_augmented(const ImageStream& stream, std::int64_t images, StageInputs& inputs, const Make& make) {
  CropPipeline pipeline(stream.size, *stream.kernels);
  const Rng rng(stream.order.seed, "augmentation");
  gather(stream, images, [&](std::span<const std::byte> bytes, std::int64_t image) {
    const auto position = static_cast<std::int64_t>(inputs.images.size());
    if (!pipeline.open(bytes) || !make(pipeline, augmentation_of(stream, rng, position, pipeline)))
      return stream.bad->add(image, pipeline.error()), false;
    inputs.images.push_back(image);
    return true;
  });
}

}  // namespace

StageInputs load_compressed(const ImageStream& stream, std::int64_t images, std::uint64_t max_bytes) {
  StageInputs inputs;
  std::uint64_t total = 0;
  JpegDecoder decoder;
  gather(stream, images, [&](std::span<const std::byte> bytes, std::int64_t image) {
    if (!inputs.images.empty() && total + bytes.size() > max_bytes) return true;  // full: counted but not kept
    if (!decoder.open(bytes)) return stream.bad->add(image, decoder.error()), false;
    total += bytes.size();
    inputs.compressed.emplace_back(bytes.begin(), bytes.end());
    inputs.images.push_back(image);
    return true;
  });
  return inputs;
}

StageInputs load_crops(const ImageStream& stream, std::int64_t images) {
  StageInputs inputs;
  gather_augmented(stream, images, inputs, [&](CropPipeline& pipeline, const Augmentation& drawn) {
    DecodedCrop crop;
    if (!pipeline.decode(drawn.crop, crop)) return false;
    inputs.crops.push_back(std::move(crop));
    inputs.flips.push_back(drawn.flip);
    return true;
  });
  return inputs;
}

StageInputs load_samples(const ImageStream& stream, std::int64_t images) {
  StageInputs inputs;
  gather_augmented(stream, images, inputs, [&](CropPipeline& pipeline, const Augmentation& drawn) {
    AlignedBytes sample(static_cast<std::size_t>(sample_bytes(stream.size)));
    if (!pipeline.run(drawn, sample.as<float>())) return false;
    inputs.samples.push_back(std::move(sample));
    return true;
  });
  return inputs;
}

namespace {

class ImageReading final : public SampleMaker {
 public:
  explicit ImageReading(const ImageStream& stream) : stream_(stream), reader_(*stream.set, stream.direct) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::int64_t image = stream_.order.image(position);
    const auto bytes = stream_.read(reader_, image);
    if (!bytes) stream_.bad->add(image, reader_.error());
    *slot.index = image;
    *slot.label = stream_.set->label(static_cast<std::size_t>(image));
    *slot.bytes = bytes ? static_cast<std::int64_t>(bytes->size()) : 0;
  }

 private:
  const ImageStream& stream_;
  ImageReader reader_;
};

// Stages fed from memory go through their inputs in order; those were loaded in the stream's shuffled order.
class FromMemory : public SampleMaker {
 protected:
  FromMemory(const ImageStream& stream, const StageInputs& inputs) : stream_(stream), inputs_(inputs) {}
  std::size_t pick(std::int64_t position, const SampleSlot& slot) const {
    const auto input = static_cast<std::size_t>(position) % inputs_.images.size();
    *slot.index = inputs_.images[input];
    *slot.label = stream_.set->label(static_cast<std::size_t>(inputs_.images[input]));
    *slot.bytes = 0;
    return input;
  }

  const ImageStream& stream_;
  const StageInputs& inputs_;
};

class Decoding final : public FromMemory {
 public:
  Decoding(const ImageStream& stream, const StageInputs& inputs)
      : FromMemory(stream, inputs), rng_(stream.order.seed, "augmentation"), pipeline_(stream.size, *stream.kernels) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::size_t input = pick(position, slot);
    *slot.bytes = static_cast<std::int64_t>(inputs_.compressed[input].size());
    if (!pipeline_.open(inputs_.compressed[input]) ||
        !pipeline_.decode(augmentation_of(stream_, rng_, position, pipeline_).crop, crop_))
      stream_.bad->add(inputs_.images[input], pipeline_.error());
  }

 private:
  Rng rng_;
  CropPipeline pipeline_;
  DecodedCrop crop_;
};

class Augmenting final : public FromMemory {
 public:
  Augmenting(const ImageStream& stream, const StageInputs& inputs)
      : FromMemory(stream, inputs),
        pipeline_(stream.size, *stream.kernels),
        out_(static_cast<std::size_t>(sample_bytes(stream.size))) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::size_t input = pick(position, slot);
    pipeline_.resize(inputs_.crops[input], inputs_.flips[input], out_.as<float>());
  }

 private:
  CropPipeline pipeline_;
  AlignedBytes out_;
};

class ImageBatching final : public FromMemory {
 public:
  ImageBatching(const ImageStream& stream, const StageInputs& inputs) : FromMemory(stream, inputs) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    const std::size_t input = pick(position, slot);
    std::memcpy(slot.data, inputs_.samples[input].data(), static_cast<std::size_t>(sample_bytes(stream_.size)));
  }
};

class ImagePipeline final : public SampleMaker {
 public:
  explicit ImagePipeline(const ImageStream& stream)
      : stream_(stream),
        rng_(stream.order.seed, "augmentation"),
        reader_(*stream.set, stream.direct),
        pipeline_(stream.size, *stream.kernels) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    std::int64_t image = stream_.order.image(position);
    std::string_view reason;
    for (int attempt = 0; attempt <= max_substitutes; ++attempt) {
      if (attempt) image = stream_.order.substitute(position, attempt);
      const auto bytes = stream_.read(reader_, image);
      if (!bytes) {
        reason = reader_.error();
      } else if (pipeline_.open(*bytes) && pipeline_.run(augmentation_of(stream_, rng_, position, pipeline_),
                                                         reinterpret_cast<float*>(slot.data))) {
        *slot.index = image;
        *slot.label = stream_.set->label(static_cast<std::size_t>(image));
        *slot.bytes = static_cast<std::int64_t>(bytes->size());
        return;
      } else {
        reason = pipeline_.error();
      }
      stream_.bad->add(image, reason);
    }
    throw Error(fmt::format("{} consecutive images cannot be used; the last is {}: {}", max_substitutes + 1,
                            stream_.set->name(static_cast<std::size_t>(image)), reason));
  }

 private:
  const ImageStream& stream_;
  Rng rng_;
  ImageReader reader_;
  CropPipeline pipeline_;
};

}  // namespace

std::unique_ptr<SampleMaker> make_image_reader(const ImageStream& stream) {
  return std::make_unique<ImageReading>(stream);
}
std::unique_ptr<SampleMaker> make_image_decoder(const ImageStream& stream, const StageInputs& inputs) {
  return std::make_unique<Decoding>(stream, inputs);
}
std::unique_ptr<SampleMaker> make_image_augmenter(const ImageStream& stream, const StageInputs& inputs) {
  return std::make_unique<Augmenting>(stream, inputs);
}
std::unique_ptr<SampleMaker> make_image_batcher(const ImageStream& stream, const StageInputs& inputs) {
  return std::make_unique<ImageBatching>(stream, inputs);
}
std::unique_ptr<SampleMaker> make_image_pipeline(const ImageStream& stream) {
  return std::make_unique<ImagePipeline>(stream);
}

}  // namespace assay::data
