#include "harness/history/store/packed.h"

#include "harness/history/bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::store {

static_assert(std::endian::native == std::endian::little, "stores move between machines of one byte order");

namespace {

using history::ByteReader;
using history::ByteWriter;
using history::DataError;

// Seven bits a byte, lowest first; the eighth says that more follow.
void put_number(ByteWriter& writer, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) writer(static_cast<unsigned char>(number | 0x80));
  writer(static_cast<unsigned char>(number));
}

std::uint64_t number(ByteReader& reader) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    const auto byte = reader.get<unsigned char>();
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  throw DataError("a number that does not end");
}

constexpr std::uint64_t max_id = std::uint64_t{1} << 60;

// Ids ascend, so that their differences are small.
std::int64_t next_id(ByteReader& reader, std::int64_t last) {
  const std::uint64_t step = number(reader);
  if (step > max_id || static_cast<std::uint64_t>(last) + step > max_id) throw DataError("an id that is too large");
  return last + static_cast<std::int64_t>(step);
}

}  // namespace

std::string pack_points(std::vector<PackedPoint> points) {
  std::ranges::stable_sort(points, {}, &PackedPoint::series);
  ByteWriter writer;
  std::int64_t last = 0;
  for (const PackedPoint& point : points) {
    put_number(writer, static_cast<std::uint64_t>(point.series - last));
    last = point.series;
    writer(point.log), writer(point.within);
    put_number(writer,
               static_cast<std::uint64_t>(point.choices) << 2 | (point.weekly ? 2u : 0u) | (point.disturbed ? 1u : 0u));
  }
  return writer.bytes();
}

std::string pack_cases(std::vector<std::int64_t> cases) {
  std::ranges::sort(cases);
  ByteWriter writer;
  std::int64_t last = 0;
  for (const std::int64_t one : cases) put_number(writer, static_cast<std::uint64_t>(one - last)), last = one;
  return writer.bytes();
}

std::string pack_broken(const std::vector<BrokenCase>& cases) {
  ByteWriter writer;
  for (const BrokenCase& one : cases) {
    put_number(writer, static_cast<std::uint64_t>(one.benchmark));
    put_number(writer, one.text.size());
    writer.raw(one.text);
  }
  return writer.bytes();
}

void unpack_points(std::string_view bytes, std::vector<PackedPoint>& points) {
  points.clear();
  ByteReader reader(bytes);
  for (std::int64_t last = 0; !reader.at_end();) {
    PackedPoint& point = points.emplace_back();
    last = point.series = next_id(reader, last);
    point.log = reader.get<double>();
    if (!std::isfinite(point.log)) throw DataError("a figure that is no number");
    point.within = reader.get<float>();
    const std::uint64_t rest = number(reader);
    point.choices = static_cast<std::int64_t>(rest >> 2);
    point.weekly = (rest & 2) != 0;
    point.disturbed = (rest & 1) != 0;
  }
}

std::vector<std::int64_t> unpack_cases(std::string_view bytes) {
  std::vector<std::int64_t> cases;
  ByteReader reader(bytes);
  for (std::int64_t last = 0; !reader.at_end();) cases.push_back(last = next_id(reader, last));
  return cases;
}

std::vector<BrokenCase> unpack_broken(std::string_view bytes) {
  std::vector<BrokenCase> cases;
  for (ByteReader reader(bytes); !reader.at_end();) {
    BrokenCase& one = cases.emplace_back();
    one.benchmark = next_id(reader, 0);
    one.text = std::string(reader.take(number(reader)));
  }
  return cases;
}

}  // namespace assay::store
