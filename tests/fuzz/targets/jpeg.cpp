// JPEG images, decoded whole or by a crop, or further to a tensor. The last bytes of the input select this, since
// decoders ignore what follows an image. The image is also that of a folder with a subfolder per class.
#include "tests/fuzz/fuzz.h"
#include "workloads/data/crop_pipeline.h"
#include "workloads/data/image_set.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace assay::fuzz {

void jpeg(std::string_view input) {
  constexpr int size = 8;
  static const auto decoder = std::make_unique<data::JpegDecoder>(
      data::JpegLimits{.max_pixels = 1 << 18, .max_memory_bytes = std::size_t{64} << 20, .max_scans = 20});
  static data::CropPipeline pipeline(size, data::best_resize_kernels());
  std::array<std::uint8_t, 6> choice{};
  for (std::size_t i = 0; i < std::min(choice.size(), input.size()); ++i)
    choice[i] = static_cast<std::uint8_t>(input[input.size() - 1 - i]);
  const auto* bytes = reinterpret_cast<const std::byte*>(input.data());
  static const std::filesystem::path images = folder() / "images";
  static const MemoryFile file(images / "tench" / "n01440764_10026.JPEG");
  file.write(input);
  const data::ImageSet set = data::ImageSet::open(images);
  data::ImageReader reader(set, false);
  const auto held = reader.read(0);
  expect(set.size() == 1 && set.label(0) == 0 && data::ImageSet::problem_with(images).empty() && held &&
             std::ranges::equal(*held, std::span(bytes, input.size())),
         "a folder's image that is not the file");
  // A copy, so that sanitizers detect reads past its end.
  const std::vector<std::byte> image(bytes, bytes + input.size());
  const auto refused = [&](std::string_view why) { expect_message(why, ""); };
  if (!decoder->open(image)) return refused(decoder->error());
  const int width = decoder->width(), height = decoder->height();
  const auto part = [](int whole, int at) { return whole * at / 256; };
  data::Crop crop{part(width, choice[1]), part(height, choice[2]), 0, 0};
  crop.width = 1 + part(width - crop.x - 1, choice[3]);
  crop.height = 1 + part(height - crop.y - 1, choice[4]);
  if (choice[5] < 64) crop = {0, 0, width, height};
  if (choice[0] % 2 == 0) {
    const int denominator = 1 << (choice[0] / 2 % 4);
    if (!decoder->start(crop, denominator)) return refused(decoder->error());
    const auto stride = static_cast<std::size_t>(decoder->row_pixels()) * 4 + 64;
    std::vector<std::uint8_t> pixels(stride * 16);
    std::array<std::uint8_t*, 16> rows{};
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = pixels.data() + i * stride;
    for (int done = 0; done < decoder->rows();) {
      const int count = std::min(16, decoder->rows() - done);
      if (!decoder->read(rows.data(), count)) return refused(decoder->error());
      done += count;
    }
  } else {
    std::array<float, size * size * 3> out{};
    if (!pipeline.open(image) || !pipeline.run({crop, choice[0] > 127}, out.data())) return refused(pipeline.error());
    for (const float value : out) expect(value > -4 && value < 4, "an invalid pixel");
  }
}

}  // namespace assay::fuzz
