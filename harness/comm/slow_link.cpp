#include "harness/comm/slow_link.h"

#include "harness/device/delay.h"

#include <algorithm>

namespace assay {

namespace {

constexpr double seconds_per_call = 100e-6;
constexpr double seconds_per_byte = 8e-9;

}  // namespace

void SlowLink::delay_bytes(std::size_t bytes, Stream& stream) {
  if (!used_.exchange(true) && on_use_) on_use_();
  delay(device_, stream, seconds_per_call + seconds_per_byte * static_cast<double>(bytes));
}

std::unique_ptr<Communicator> SlowLink::split(int colour, int key) {
  return std::unique_ptr<Communicator>(new SlowLink(inner_.split(colour, key), device_, on_use_));
}

// A ring moves all but the rank's own part, twice.
void SlowLink::all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                          Stream& stream) {
  inner_.all_reduce(send, receive, count, dtype, op, stream);
  const auto ranks = static_cast<std::size_t>(size());
  delay_bytes(2 * count * size_of(dtype) * (ranks - 1) / ranks, stream);
}

void SlowLink::all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) {
  inner_.all_gather(send, receive, count, dtype, stream);
  delay_bytes(count * size_of(dtype) * static_cast<std::size_t>(size() - 1), stream);
}

void SlowLink::reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                              Stream& stream) {
  inner_.reduce_scatter(send, receive, count, dtype, op, stream);
  delay_bytes(count * size_of(dtype) * static_cast<std::size_t>(size() - 1), stream);
}

void SlowLink::broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root, Stream& stream) {
  inner_.broadcast(send, receive, count, dtype, root, stream);
  delay_bytes(count * size_of(dtype), stream);
}

void SlowLink::all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) {
  inner_.all_to_all(send, receive, count, dtype, stream);
  delay_bytes(count * size_of(dtype) * static_cast<std::size_t>(size() - 1), stream);
}

void SlowLink::all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                            std::span<const std::size_t> received, DType dtype, Stream& stream) {
  inner_.all_to_all_v(send, sent, receive, received, dtype, stream);
  const auto own = static_cast<std::size_t>(rank());
  std::size_t out = 0, in = 0;
  for (std::size_t r = 0; r < sent.size(); ++r)
    if (r != own) out += sent[r], in += received[r];
  delay_bytes(std::max(out, in) * size_of(dtype), stream);
}

void SlowLink::send(const void* data, std::size_t count, DType dtype, int to, Stream& stream) {
  inner_.send(data, count, dtype, to, stream);
  if (in_group_)
    sent_ += count * size_of(dtype);
  else
    delay_bytes(count * size_of(dtype), stream);
}

void SlowLink::receive(void* data, std::size_t count, DType dtype, int from, Stream& stream) {
  inner_.receive(data, count, dtype, from, stream);
  if (in_group_)
    received_ += count * size_of(dtype);
  else
    delay_bytes(count * size_of(dtype), stream);
}

void SlowLink::group(const std::function<void()>& body, Stream& stream) {
  sent_ = received_ = 0;
  in_group_ = true;
  try {
    inner_.group(body, stream);
  } catch (...) {
    in_group_ = false;
    throw;
  }
  in_group_ = false;
  // The link is full duplex.
  if (sent_ + received_ > 0) delay_bytes(std::max(sent_, received_), stream);
}

}  // namespace assay
