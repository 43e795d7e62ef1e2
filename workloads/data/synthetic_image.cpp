// Counter-based integers throughout; no libm, no floating point.
#include "workloads/data/synthetic_image.h"

#include "harness/core/rng.h"
#include "workloads/data/mix.h"

#include <algorithm>
#include <array>

namespace assay::data {

namespace {

// Random numbers for one picture, drawn in order from its own counter range.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t index) : rng_(seed, "synthetic image"), next_(index << 20) {}
  int below(int bound) { return static_cast<int>(rng_.below(next_++, static_cast<std::uint64_t>(bound))); }
  int between(int low, int high) { return low + below(high - low + 1); }
  std::uint64_t u64() { return rng_.u64(next_++); }

 private:
  Rng rng_;
  std::uint64_t next_;
};

// Roughly normal in [-510, 510], standard deviation 148: the sum of four bytes.
int grain(std::uint64_t bits) {
  return static_cast<int>((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24 & 255)) - 510;
}

using Plane = std::vector<std::int16_t>;

// Adds weight / 64 times value noise with lattice spacing 2^log_cell, linearly interpolated, to a plane.
void add_noise(std::uint64_t key, int width, int height, int log_cell, int weight, Plane& plane) {
  const int cell = 1 << log_cell;
  const int columns = (width >> log_cell) + 2;
  std::vector<int> above(static_cast<std::size_t>(columns)), below(above), mixed(above);
  const auto fill = [&](int row, std::vector<int>& line) {
    for (int c = 0; c < columns; ++c)
      line[static_cast<std::size_t>(c)] =
          grain(mix(key + (static_cast<std::uint64_t>(row) << 24) + static_cast<std::uint64_t>(c))) * weight / 64;
  };
  fill(0, above);
  fill(1, below);
  for (int y = 0; y < height; ++y) {
    const int fraction = y & (cell - 1);
    if (y && fraction == 0) {
      above.swap(below);
      fill((y >> log_cell) + 1, below);
    }
    for (std::size_t c = 0; c < mixed.size(); ++c) mixed[c] = above[c] * (cell - fraction) + below[c] * fraction;
    std::int16_t* row = plane.data() + static_cast<std::ptrdiff_t>(y) * width;
    const int shift = 2 * log_cell;
    for (int start = 0, c = 0; start < width; start += cell, ++c) {
      const int left = mixed[static_cast<std::size_t>(c)];
      const int right = mixed[static_cast<std::size_t>(c) + 1];
      const int end = std::min(cell, width - start);
      for (int x = 0; x < end; ++x)
        row[start + x] = static_cast<std::int16_t>(row[start + x] + ((left * (cell - x) + right * x) >> shift));
    }
  }
}

struct Shape {
  int luma, blue, red;   // colour, x 8
  int slope_x, slope_y;  // shading, x 8 per 64 pixels
  int coarse, fine;      // weights of the two textures, in 64ths
};

// One leaf: a slanted ellipse or box.
void stamp(Draw& draw, int width, int height, int radius, std::uint16_t id, std::vector<std::uint16_t>& ids) {
  const int cx = draw.below(width), cy = draw.below(height);
  const int rx = std::max(1, radius * draw.between(40, 160) / 100),
            ry = std::max(1, radius * draw.between(40, 160) / 100);
  const int lean = draw.between(-40, 40);  // x shift per row, in 64ths
  const bool box = draw.below(3) == 0;
  for (int y = std::max(0, cy - ry); y <= std::min(height - 1, cy + ry); ++y) {
    const std::int64_t dy = y - cy;
    int half = rx;
    if (!box) {
      // The largest half with (half / rx)^2 + (dy / ry)^2 <= 1.
      const std::int64_t room = static_cast<std::int64_t>(rx) * rx * (static_cast<std::int64_t>(ry) * ry - dy * dy);
      int low = 0, high = rx;
      while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (static_cast<std::int64_t>(middle) * middle * ry * ry <= room)
          low = middle;
        else
          high = middle - 1;
      }
      half = low;
    }
    const int centre = cx + static_cast<int>(dy * lean / 64);
    const int from = std::max(0, centre - half), to = std::min(width - 1, centre + half);
    if (from <= to) std::fill_n(ids.begin() + static_cast<std::ptrdiff_t>(y) * width + from, to - from + 1, id);
  }
}

Shape draw_shape(Draw& draw, int detail) {
  Shape shape;
  shape.luma = draw.between(24, 232) * 8;
  shape.blue = (128 + draw.between(-28, 28)) * 8;
  shape.red = (128 + draw.between(-28, 28)) * 8;
  shape.slope_x = draw.between(-80, 80);
  shape.slope_y = draw.between(-80, 80);
  // A third of the shapes are smooth, like sky, walls and out-of-focus regions.
  const bool smooth = draw.below(3) == 0;
  shape.coarse = (smooth ? draw.between(2, 12) : draw.between(16, 100)) * detail / 64;
  shape.fine = (smooth ? draw.between(0, 4) : draw.between(4, 110)) * detail / 64;
  return shape;
}

void draw_size(Draw& draw, SyntheticImage& out) {
  const int longer = draw.below(10) < 7 ? 500 : draw.between(340, 680);
  const int shorter = longer * (draw.below(10) < 5 ? 75 : draw.between(60, 96)) / 100;
  const bool portrait = draw.below(4) == 0;
  out.width = portrait ? shorter : longer;
  out.height = portrait ? longer : shorter;
}

}  // namespace

void draw_synthetic_image(std::uint64_t seed, std::uint64_t index, SyntheticImage& out) {
  Draw draw(seed, index);
  draw_size(draw, out);
  out.label = static_cast<int>(index % synthetic_classes);
  const int width = out.width, height = out.height;
  const auto count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);

  // The amount of detail, which varies by a factor of about two between pictures.
  const int detail = draw.between(72, 126) + draw.between(0, 114);
  const int leaves = draw.between(80, 420);
  std::vector<Shape> shapes;
  std::vector<std::uint16_t> ids(count, 0);
  shapes.push_back(draw_shape(draw, detail));
  for (int leaf = 0; leaf < leaves; ++leaf) {
    shapes.push_back(draw_shape(draw, detail));
    // Radii from 2 to 200 with a density of about r^-2: the reciprocal of a uniform number.
    const int radius = 400 / draw.between(2, 130);
    stamp(draw, width, height, radius, static_cast<std::uint16_t>(shapes.size() - 1), ids);
  }

  const std::uint64_t key = draw.u64();
  Plane coarse(count, 0), fine(count, 0), tint(count, 0);
  for (int octave = 3; octave <= 7; ++octave)
    add_noise(key + (std::uint64_t(octave) << 56), width, height, octave, 64, coarse);
  for (int octave = 0; octave <= 2; ++octave)
    add_noise(key + (std::uint64_t(octave) << 56), width, height, octave, 28 + 12 * octave, fine);
  for (int octave = 2; octave <= 6; octave += 2)
    add_noise(~key + (std::uint64_t(octave) << 56), width, height, octave, 64, tint);

  // Colour of every pixel before the lens, x 8.
  std::array<Plane, 3> planes{Plane(count), Plane(count), Plane(count)};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::size_t i = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
      const Shape& s = shapes[ids[i]];
      const int shade = (s.slope_x * x + s.slope_y * y) / 64;
      const int texture = (coarse[i] * s.coarse + fine[i] * s.fine) / 64;
      planes[0][i] = static_cast<std::int16_t>(std::clamp(s.luma + shade + texture, 0, 255 * 8));
      planes[1][i] = static_cast<std::int16_t>(s.blue + (tint[i] * s.coarse / 64 - texture / 2) / 6);
      planes[2][i] = static_cast<std::int16_t>(s.red + (texture / 2 + tint[i] * s.coarse / 64) / 6);
    }

  // The lens: a 1 2 1 filter in both directions, plus the sensor's grain.
  out.pixels.resize(count * 3);
  const std::uint64_t sensor = mix(key ^ 0x5e450a);
  for (int channel = 0; channel < 3; ++channel) {
    const Plane& plane = planes[static_cast<std::size_t>(channel)];
    for (int y = 0; y < height; ++y) {
      const auto row = [&](int r) {
        return plane.data() + static_cast<std::ptrdiff_t>(std::clamp(r, 0, height - 1)) * width;
      };
      const std::int16_t *a = row(y - 1), *b = row(y), *c = row(y + 1);
      std::uint8_t* to = out.pixels.data() + static_cast<std::ptrdiff_t>(y) * width * 3 + channel;
      for (int x = 0; x < width; ++x) {
        const int l = std::max(x - 1, 0), r = std::min(x + 1, width - 1);
        int sum = a[l] + 2 * a[x] + a[r] + 2 * (b[l] + 2 * b[x] + b[r]) + c[l] + 2 * c[x] + c[r];
        const auto at = (static_cast<std::uint64_t>(y) << 24) + (static_cast<std::uint64_t>(x) << 2) +
                        static_cast<unsigned>(channel);
        sum += grain(mix(sensor + at)) * (channel == 0 ? 30 : 15) / 128;
        to[x * 3] = static_cast<std::uint8_t>(std::clamp((sum + 64) / 128, 0, 255));
      }
    }
  }
}

}  // namespace assay::data
