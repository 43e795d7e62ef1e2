// A state as bytes: a magic number with the version, the members in order, and a checksum.
#include "harness/history/bytes.h"
#include "harness/history/detect/detector.h"

#include <cstring>

namespace assay::history {

namespace {

constexpr std::uint32_t magic = 0x41484403;  // the last byte is the version

// FNV-1a (Fowler, Noll & Vo), which is enough against accidents.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

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
  ByteWriter writer;
  writer(magic);
  members(writer, state);
  writer(checksum(writer.bytes()));
  return writer.bytes();
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
  ByteReader reader(bytes.substr(sizeof version));
  SeriesState state;
  members(reader, state);
  for (const Change& change : state.changes) {
    if (change.stage > Stage::recovered) throw DataError("the state of a series is damaged");
  }
  if (!reader.at_end()) throw DataError("the state of a series is damaged");
  return state;
}

}  // namespace assay::history
