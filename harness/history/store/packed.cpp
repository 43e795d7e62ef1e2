#include "harness/history/store/packed.h"

#include "harness/core/error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace assay::store {

static_assert(std::endian::native == std::endian::little, "stores move between machines of one byte order");

namespace {

// Seven bits a byte, lowest first; the eighth says that more follow.
void put_number(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

template <typename Value>
void put_value(std::string& bytes, Value value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof value);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool more() const { return !bytes_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw Error("a number that does not end");
  }
  template <typename Value>
  Value value() {
    Value value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw Error("bytes that end too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view bytes_;
};

constexpr std::uint64_t max_id = std::uint64_t{1} << 60;

// Ids ascend, so that their differences are small.
std::int64_t next_id(Reader& reader, std::int64_t last) {
  const std::uint64_t step = reader.number();
  if (step > max_id || static_cast<std::uint64_t>(last) + step > max_id) throw Error("an id that is too large");
  return last + static_cast<std::int64_t>(step);
}

}  // namespace

std::string pack_points(std::vector<PackedPoint> points) {
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.series < b.series; });
  std::string bytes;
  bytes.reserve(16 * points.size());
  std::int64_t last = 0;
  for (const PackedPoint& point : points) {
    put_number(bytes, static_cast<std::uint64_t>(point.series - last));
    last = point.series;
    put_value(bytes, point.log);
    put_value(bytes, point.within);
    put_number(bytes,
               static_cast<std::uint64_t>(point.choices) << 2 | (point.weekly ? 2u : 0u) | (point.disturbed ? 1u : 0u));
  }
  return bytes;
}

std::string pack_cases(std::vector<std::int64_t> cases) {
  std::sort(cases.begin(), cases.end());
  std::string bytes;
  std::int64_t last = 0;
  for (const std::int64_t one : cases) put_number(bytes, static_cast<std::uint64_t>(one - last)), last = one;
  return bytes;
}

std::string pack_broken(const std::vector<BrokenCase>& cases) {
  std::string bytes;
  for (const BrokenCase& one : cases) {
    put_number(bytes, static_cast<std::uint64_t>(one.benchmark));
    put_number(bytes, one.text.size());
    bytes += one.text;
  }
  return bytes;
}

void unpack_points(std::string_view bytes, std::vector<PackedPoint>& points) {
  points.clear();
  Reader reader(bytes);
  for (std::int64_t last = 0; reader.more();) {
    PackedPoint& point = points.emplace_back();
    last = point.series = next_id(reader, last);
    point.log = reader.value<double>();
    if (!std::isfinite(point.log)) throw Error("a figure that is no number");
    point.within = reader.value<float>();
    const std::uint64_t rest = reader.number();
    point.choices = static_cast<std::int64_t>(rest >> 2);
    point.weekly = (rest & 2) != 0;
    point.disturbed = (rest & 1) != 0;
  }
}

std::vector<std::int64_t> unpack_cases(std::string_view bytes) {
  std::vector<std::int64_t> cases;
  Reader reader(bytes);
  for (std::int64_t last = 0; reader.more();) cases.push_back(last = next_id(reader, last));
  return cases;
}

std::vector<BrokenCase> unpack_broken(std::string_view bytes) {
  std::vector<BrokenCase> cases;
  for (Reader reader(bytes); reader.more();) {
    BrokenCase& one = cases.emplace_back();
    one.benchmark = next_id(reader, 0);
    one.text = std::string(reader.take(reader.number()));
  }
  return cases;
}

}  // namespace assay::store
