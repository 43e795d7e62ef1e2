// A state as bytes: a magic number with the version, the members in order, and a checksum.
#include "harness/history/detect/detector.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace assay::history {

namespace {

constexpr std::uint32_t magic = 0x41484402;  // the last byte is the version

// FNV-1a (Fowler, Noll & Vo), which is enough against accidents.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

class Writer {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
  }
  template <typename T>
  void list(const std::vector<T>& values, auto member) {
    (*this)(static_cast<std::uint32_t>(values.size()));
    for (const T& value : values) member(value);
  }
  template <typename T>
  void optional(const std::optional<T>& value, auto member) {
    (*this)(static_cast<std::uint8_t>(value.has_value()));
    if (value) member(*value);
  }
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(T& value) {
    if (bytes_.size() < sizeof(T)) throw DataError("the state of a series ends too early");
    if constexpr (std::is_same_v<T, bool>) {
      value = bytes_.front() != 0;
    } else {
      std::memcpy(&value, bytes_.data(), sizeof(T));
    }
    bytes_.remove_prefix(sizeof(T));
  }
  template <typename T>
  void list(std::vector<T>& values, auto member) {
    std::uint32_t count = 0;
    (*this)(count);
    if (count > bytes_.size()) throw DataError("the state of a series ends too early");
    values.resize(count);
    for (T& value : values) member(value);
  }
  template <typename T>
  void optional(std::optional<T>& value, auto member) {
    std::uint8_t present = 0;
    (*this)(present);
    if (present) member(value.emplace());
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// The same for writing and for reading.
template <typename Io, typename State>
void members(Io& io, State& state) {
  const auto value = [&](auto& x) { io(x); };
  const auto interval = [&](auto& x) { io(x.low), io(x.high); };
  io.list(state.regimes, value);
  io.list(state.changes, [&](auto& change) {
    io(change.stage), io(change.last_before), io(change.first_after), io(change.suspected);
    io.optional(change.opened, value);
    io.optional(change.closed, value);
    io(change.p), io(change.shift), interval(change.interval), io(change.same_night);
    io.list(change.gaps, [&](auto& gap) { io(gap.before), io(gap.after), io(gap.weight); });
  });
  io.optional(state.drift, [&](auto& drift) { io(drift.shift), interval(drift.interval), io(drift.since); });
  io(state.sigma), io(state.correlation);
  io.optional(state.detectable, value);
  io(state.flaky);
  const auto excursion = [&](auto& x) { io(x.first), io(x.last); };
  io.list(state.excursions, excursion), io.list(state.left_out, excursion);
  io(state.settled), io(state.noise_until), io(state.testing), io(state.spread);
}

}  // namespace

std::string to_bytes(const SeriesState& state) {
  Writer writer;
  writer(magic);
  members(writer, state);
  writer(checksum(writer.text_));
  return std::move(writer.text_);
}

SeriesState state_of_bytes(std::string_view bytes) {
  constexpr std::size_t frame = sizeof(std::uint32_t) + sizeof(std::uint64_t);
  std::uint32_t version = 0;
  if (bytes.size() >= frame) std::memcpy(&version, bytes.data(), sizeof version);
  if (version != magic) throw DataError("the state of a series is of another version");
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (checksum(bytes) != sum) throw DataError("the state of a series is damaged");
  Reader reader(bytes.substr(sizeof version));
  SeriesState state;
  members(reader, state);
  for (const Change& change : state.changes) {
    if (change.stage > Stage::recovered) throw DataError("the state of a series is damaged");
  }
  if (!reader.at_end()) throw DataError("the state of a series is damaged");
  return state;
}

}  // namespace assay::history
