// Cropped decoding against full decoding, and damaged images.
#include "tests/unit/data/fixtures.h"

#include "harness/core/dtype.h"
#include "harness/core/rng.h"
#include "workloads/data/crop_pipeline.h"
#include "workloads/data/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay::data {
namespace {

using test::Bytes;
using test::Kind;

// Compares every pixel of the cropped decode with the whole image.
void expect_equal_to_full(const Bytes& jpeg, const Crop& crop) {
  std::string error;
  const ReferenceImage whole = reference_decode(jpeg, error);
  ASSERT_FALSE(whole.pixels.empty()) << error;
  CropPipeline pipeline(224, detail::generic_kernels);
  ASSERT_TRUE(pipeline.open(jpeg)) << pipeline.error();
  DecodedCrop decoded;
  ASSERT_TRUE(pipeline.decode(crop, decoded)) << pipeline.error();
  ASSERT_EQ(decode_denominator(crop, 224), 1) << "a shrunk crop cannot be compared";
  std::size_t wrong = 0;
  for (int y = 0; y < crop.height; ++y)
    for (int x = 0; x < crop.width; ++x) {
      const std::uint8_t* got =
          decoded.pixels.as<std::uint8_t>() +
          (static_cast<std::size_t>(decoded.box.y) + static_cast<std::size_t>(y)) * decoded.stride +
          (static_cast<std::size_t>(decoded.box.x) + static_cast<std::size_t>(x)) * 4;
      const std::uint8_t* want =
          whole.pixels.data() + (static_cast<std::size_t>(crop.y + y) * static_cast<std::size_t>(whole.width) +
                                 static_cast<std::size_t>(crop.x + x)) *
                                    3;
      wrong += !std::equal(want, want + 3, got);
    }
  EXPECT_EQ(wrong, 0u) << crop.x << "," << crop.y << " " << crop.width << "x" << crop.height;
}

class CropDecode : public testing::TestWithParam<Kind> {};

TEST_P(CropDecode, EqualsFullDecodeThenCropInEveryPixel) {
  const Bytes jpeg = test::picture_as(GetParam(), 0);
  JpegDecoder decoder;
  ASSERT_TRUE(decoder.open(jpeg)) << decoder.error();
  const int width = decoder.width(), height = decoder.height();
  const Rng rng(3, "test");
  for (std::uint64_t i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    expect_equal_to_full(jpeg, draw_augmentation(rng, i, width, height).crop);
  }
  expect_equal_to_full(jpeg, {0, 0, width, height});
  expect_equal_to_full(jpeg, {0, 0, 1, 1});
  expect_equal_to_full(jpeg, {width - 1, height - 1, 1, 1});
  expect_equal_to_full(jpeg, {16, 16, 32, 32});
  expect_equal_to_full(jpeg, {17, 31, 3, 200});
  expect_equal_to_full(jpeg, {width - 20, 0, 20, 17});
}

INSTANTIATE_TEST_SUITE_P(Kinds, CropDecode,
                         testing::Values(Kind::full_chroma, Kind::half_chroma, Kind::quarter_chroma, Kind::grey,
                                         Kind::cmyk, Kind::progressive));

TEST(JpegDecoder, DetectsTruncationAnywhere) {
  const Bytes jpeg = test::picture(1);
  JpegDecoder decoder;
  for (std::size_t keep :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{100}, jpeg.size() / 2, jpeg.size() - 1}) {
    EXPECT_FALSE(decoder.open(std::span(jpeg).first(keep))) << keep;
    EXPECT_FALSE(decoder.error().empty());
  }
  EXPECT_TRUE(decoder.open(jpeg)) << decoder.error();
}

TEST(JpegDecoder, RejectsBombs) {
  const Bytes jpeg = test::picture(1);
  JpegDecoder decoder({1000, std::size_t{1} << 30, 200});
  EXPECT_FALSE(decoder.open(jpeg));
  EXPECT_NE(decoder.error().find("over the limit"), std::string_view::npos);
}

TEST(JpegDecoder, MutatedBytesNeverCrash) {
  const Rng rng(11, "mutations");
  CropPipeline pipeline(224, best_resize_kernels());
  std::vector<float> out(224 * 224 * 3);
  std::uint64_t draw = 0;
  int failures = 0;
  for (const Kind kind : {Kind::full_chroma, Kind::quarter_chroma, Kind::progressive, Kind::grey, Kind::cmyk}) {
    const Bytes good = test::picture_as(kind, 2);
    for (int round = 0; round < 120; ++round) {
      Bytes bad = good;
      // Half of the rounds hit the headers, which hold sizes and tables.
      const std::size_t reach = round % 2 ? bad.size() : 700;
      for (int hit = 0; hit < 4; ++hit, draw += 2)
        bad[rng.below(draw, reach)] = static_cast<std::byte>(rng.below(draw + 1, 256));
      const bool opened = pipeline.open(bad);
      const Augmentation drawn =
          opened ? draw_augmentation(rng, draw++, pipeline.width(), pipeline.height()) : Augmentation{};
      if (opened && pipeline.run(drawn, out.data())) {
        for (const float value : out) ASSERT_TRUE(value > -4 && value < 4) << "not a normalised pixel: " << value;
      } else {
        EXPECT_FALSE(pipeline.error().empty());
        ++failures;
      }
    }
  }
  EXPECT_GT(failures, 100);
  EXPECT_TRUE(pipeline.open(test::picture(1)));
}

class Resize : public testing::TestWithParam<const char*> {};

TEST_P(Resize, MatchesTheReference) {
  const ResizeKernels* kernels = resize_kernels(GetParam());
  if (!kernels) GTEST_SKIP() << "this processor has no " << GetParam();
  const Normalization norm;
  const Rng rng(5, "resize");
  for (const int size : {224, 97, 33}) {
    CropPipeline pipeline(size, *kernels);
    const std::size_t values = static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3;
    std::vector<float> out(values + 16, -77.0f);
    std::vector<std::uint16_t> narrow(values);
    for (std::uint64_t i = 0; i < 6; ++i) {
      const Bytes jpeg = test::picture_as(Kind::quarter_chroma, i);
      std::string error;
      const ReferenceImage whole = reference_decode(jpeg, error);
      Augmentation drawn = draw_augmentation(rng, i, whole.width, whole.height);
      if (i == 5) drawn.crop = {3, 5, 9, 7};  // enlarged
      if (decode_denominator(drawn.crop, size) != 1) continue;
      ASSERT_TRUE(pipeline.open(jpeg));
      ASSERT_TRUE(pipeline.run(drawn, out.data())) << pipeline.error();
      const std::vector<double> want = reference_resize(whole, drawn, size);
      double worst = 0;
      for (std::size_t v = 0; v < values; ++v)
        worst = std::max(
            worst,
            std::abs(255.0 * (static_cast<double>(out[v]) * norm.deviation[v % 3] + norm.mean[v % 3]) - want[v]));
      EXPECT_LT(worst, 0.01) << size << " " << i;
      for (std::size_t v = values; v < out.size(); ++v) EXPECT_EQ(out[v], -77.0f) << "written past the sample";
      ASSERT_TRUE(pipeline.open(jpeg));
      ASSERT_TRUE(pipeline.run(drawn, narrow.data()));
      std::size_t wrong = 0;
      for (std::size_t v = 0; v < values; ++v) wrong += narrow[v] != ::assay::bf16(out[v]).bits;
      EXPECT_EQ(wrong, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Resize, testing::Values("generic", "avx2", "avx512"));

TEST(Resize, ScaledDecodeStaysNearTheReference) {
  // Large crops are first shrunk in the frequency domain: not equal, but close on average.
  const Bytes jpeg = test::picture_as(Kind::full_chroma, 4);
  std::string error;
  const ReferenceImage whole = reference_decode(jpeg, error);
  constexpr int size = 48;
  const Augmentation drawn{{11, 9, whole.width - 20, whole.height - 15}, true};
  ASSERT_GT(decode_denominator(drawn.crop, size), 1);
  CropPipeline pipeline(size, best_resize_kernels());
  std::vector<float> out(static_cast<std::size_t>(size) * size * 3);
  ASSERT_TRUE(pipeline.open(jpeg));
  ASSERT_TRUE(pipeline.run(drawn, out.data()));
  const Normalization norm;
  const std::vector<double> want = reference_resize(whole, drawn, size);
  double sum = 0;
  for (std::size_t v = 0; v < out.size(); ++v)
    sum += std::abs(255.0 * (static_cast<double>(out[v]) * norm.deviation[v % 3] + norm.mean[v % 3]) - want[v]);
  EXPECT_LT(sum / static_cast<double>(out.size()), 4.0);
}

TEST(RandomCrop, StaysInsideAndDrawsLikeTorchvision) {
  const Rng rng(1, "crop");
  double area = 0;
  int flips = 0;
  constexpr int draws = 4000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const Augmentation a = draw_augmentation(rng, i, 500, 375);
    ASSERT_GE(a.crop.x, 0);
    ASSERT_GE(a.crop.y, 0);
    ASSERT_LE(a.crop.x + a.crop.width, 500);
    ASSERT_LE(a.crop.y + a.crop.height, 375);
    area += static_cast<double>(a.crop.width) * a.crop.height / (500.0 * 375.0);
    flips += a.flip;
  }
  // torchvision's get_params gave 0.4342 +- 0.0011 over 40,000 draws at this size (standard deviation 0.217); less than
  // 0.54 because crops that do not fit are drawn again. Four standard errors of the difference are 0.015.
  EXPECT_NEAR(area / draws, 0.4342, 0.015);
  EXPECT_NEAR(flips, draws / 2, 150);
}

TEST(RandomCrop, FallsBackToTheCentreForExtremeShapes) {
  const Augmentation tall = draw_augmentation(Rng(1, "crop"), 0, 2, 4000);
  EXPECT_EQ(tall.crop.width, 2);
  EXPECT_EQ(tall.crop.height, 3);
  const Augmentation dot = draw_augmentation(Rng(1, "crop"), 0, 1, 1);
  EXPECT_EQ(dot.crop, (Crop{0, 0, 1, 1}));
}

}  // namespace
}  // namespace assay::data
