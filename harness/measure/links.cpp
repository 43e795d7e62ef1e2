#include "harness/measure/links.h"

#include "harness/core/error.h"
#include "harness/core/host.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t message_bytes = std::size_t{1} << 20;
constexpr int exchanges = 7, most_shifts = 8;
constexpr double patience_seconds = 2;  // for all of them
constexpr double least_ratio = 2.5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::optional<SlowestLink> find_slow_link(Communicator& comm, Device& device) {
  const int ranks = comm.size();
  if (ranks < 2) return std::nullopt;
  Buffer out, in;
  bool room = true;
  try {
    out = device.allocate(message_bytes);
    in = device.allocate(message_bytes);
  } catch (const Error&) {
    room = false;
  }
  if (comm.max_of(room ? 0 : 1) > 0) return std::nullopt;  // what was measured has taken it all
  const auto stream = device.make_stream();
  device.zero(out.data(), message_bytes, *stream);
  device.zero(in.data(), message_bytes, *stream);
  stream->synchronize();
  const int shifts = device.kind() == DeviceKind::cpu ? std::min(most_shifts, ranks - 1) : 1;
  const Clock::time_point start = Clock::now();
  std::vector<double> own;
  for (int shift = 1; shift <= shifts; ++shift) {
    const int to = (comm.rank() + shift) % ranks, from = (comm.rank() + ranks - shift) % ranks;
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < exchanges; ++i) {
      comm.barrier();
      const Clock::time_point begun = Clock::now();
      comm.group(
          [&] {
            comm.send(out.data(), message_bytes, DType::u8, to, *stream);
            comm.receive(in.data(), message_bytes, DType::u8, from, *stream);
          },
          *stream);
      stream->synchronize();
      // The first call of a pair makes its connection.
      if (i > 0) fastest = std::min(fastest, seconds_since(begun));
      if (i > 0 && comm.max_of(seconds_since(start)) > patience_seconds) break;
    }
    own.push_back(fastest);
    if (comm.max_of(seconds_since(start)) > patience_seconds) break;
  }
  const double mine = middle(own);
  std::vector<double> times;
  for (int rank = 0; rank < ranks; ++rank) times.push_back(comm.broadcast_value(mine, rank));
  const auto slowest = std::max_element(times.begin(), times.end());
  SlowestLink found{static_cast<int>(slowest - times.begin()), "", 0, *slowest};
  times.erase(slowest);
  found.ratio = found.seconds / middle(times);
  if (found.ratio < least_ratio) return std::nullopt;
  using Name = std::array<char, 256>;
  Name name{};
  const std::string host = this_host();
  std::copy_n(host.begin(), std::min(host.size(), name.size() - 1), name.begin());
  std::vector<Name> names(static_cast<std::size_t>(ranks));
  comm.all_gather_host(name.data(), names.data(), sizeof name);
  found.host = names[static_cast<std::size_t>(found.rank)].data();
  return found;
}

}  // namespace assay
