#include "tests/support/communicator_contract.h"

#include "harness/core/error.h"
#include "tests/support/thread_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::test {

namespace {

template <typename T>
T element(double value) {
  return static_cast<T>(value);
}
template <>
bf16 element<bf16>(double value) {
  return bf16(static_cast<float>(value));
}
double number(double value) { return value; }
double number(float value) { return value; }
double number(std::int64_t value) { return static_cast<double>(value); }
double number(bf16 value) { return static_cast<double>(static_cast<float>(value)); }

// Element `i` of a rank's contribution: small, so that sums are exact in bf16 up to 16 ranks.
double given(int rank, std::size_t i) { return static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 5) % 13); }

template <typename T>
std::vector<T> contribution(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element<T>(given(rank, i));
  return values;
}

double reduced(ReduceOp op, int size, std::size_t i) {
  double result = given(0, i);
  for (int r = 1; r < size; ++r) {
    const double next = given(r, i);
    result = op == ReduceOp::sum   ? result + next
             : op == ReduceOp::max ? std::max(result, next)
                                   : std::min(result, next);
  }
  return result;
}

template <typename T, typename F>
void expect_each(const std::vector<T>& got, std::size_t first, std::size_t count, const F& expected, const char* what) {
  for (std::size_t i = 0; i < count; ++i)
    if (number(got[first + i]) != expected(i)) {
      ADD_FAILURE() << what << ": element " << i << " is " << number(got[first + i]) << ", not " << expected(i);
      return;
    }
}

template <typename T>
void expect_reductions(Communicator& comm, std::size_t count, DType dtype) {
  InlineStream stream;
  const int n = comm.size();
  const auto ranks = static_cast<std::size_t>(n);
  const auto me = static_cast<std::size_t>(comm.rank());
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
    const auto expected = [&](std::size_t i) { return reduced(op, n, i); };
    const auto expected_part = [&](std::size_t i) { return reduced(op, n, me * count + i); };
    const auto mine = contribution<T>(comm.rank(), count * ranks);

    auto send = mine;
    std::vector<T> receive(count * ranks);
    comm.all_reduce(send.data(), receive.data(), count * ranks, dtype, op, stream);
    expect_each(receive, 0, count * ranks, expected, "all_reduce");
    expect_each(
        send, 0, send.size(), [&](std::size_t i) { return given(comm.rank(), i); }, "all_reduce's input");
    comm.all_reduce(send.data(), send.data(), count * ranks, dtype, op, stream);
    expect_each(send, 0, count * ranks, expected, "all_reduce in place");

    send = mine;
    receive.assign(count, T{});
    comm.reduce_scatter(send.data(), receive.data(), count, dtype, op, stream);
    expect_each(receive, 0, count, expected_part, "reduce_scatter");
    expect_each(
        send, 0, send.size(), [&](std::size_t i) { return given(comm.rank(), i); }, "reduce_scatter's input");
    comm.reduce_scatter(send.data(), send.data(), count, dtype, op, stream);
    expect_each(send, me * count, count, expected_part, "reduce_scatter in place");
  }
}

template <typename T>
void expect_moves(Communicator& comm, std::size_t count, DType dtype) {
  InlineStream stream;
  const int n = comm.size();
  const auto ranks = static_cast<std::size_t>(n);
  const auto me = static_cast<std::size_t>(comm.rank());
  const auto block_of = [&](const std::vector<T>& got, const auto& expected, const char* what) {
    for (int r = 0; r < n; ++r)
      expect_each(
          got, static_cast<std::size_t>(r) * count, count, [&](std::size_t i) { return expected(r, i); }, what);
  };

  std::vector<T> gathered(count * ranks);
  const auto mine = contribution<T>(comm.rank(), count * ranks);
  comm.all_gather(mine.data(), gathered.data(), count, dtype, stream);
  block_of(gathered, given, "all_gather");
  std::vector<T> in_place(count * ranks);
  std::copy_n(mine.begin(), count, in_place.begin() + static_cast<std::ptrdiff_t>(me * count));
  comm.all_gather(in_place.data(), in_place.data(), count, dtype, stream);
  block_of(in_place, given, "all_gather in place");

  std::vector<T> received(count * ranks);
  comm.all_to_all(mine.data(), received.data(), count, dtype, stream);
  block_of(
      received, [&](int r, std::size_t i) { return given(r, me * count + i); }, "all_to_all");

  // Rank r gets r + 1 units of each.
  const std::size_t unit = count / ranks;
  std::vector<std::size_t> sent;
  for (std::size_t r = 0; r < ranks; ++r) sent.push_back((r + 1) * unit);
  const std::vector<std::size_t> taken(ranks, sent[me]);
  const auto skewed = contribution<T>(comm.rank(), unit * ranks * (ranks + 1) / 2);
  std::vector<T> uneven(ranks * sent[me]);
  comm.all_to_all_v(skewed.data(), sent, uneven.data(), taken, dtype, stream);
  for (std::size_t r = 0; r < ranks; ++r)
    expect_each(
        uneven, r * sent[me], sent[me],
        [&](std::size_t i) { return given(static_cast<int>(r), me * (me + 1) / 2 * unit + i); }, "all_to_all_v");

  for (int root = 0; root < n; ++root) {
    auto data = contribution<T>(comm.rank(), count);
    std::vector<T> separate(count);
    comm.broadcast(data.data(), separate.data(), count, dtype, root, stream);
    expect_each(
        separate, 0, count, [&](std::size_t i) { return given(root, i); }, "broadcast");
    expect_each(
        data, 0, count, [&](std::size_t i) { return given(comm.rank(), i); }, "what broadcast sends");
    comm.broadcast(data.data(), data.data(), count, dtype, root, stream);
    expect_each(
        data, 0, count, [&](std::size_t i) { return given(root, i); }, "broadcast in place");
  }

  const int next = (comm.rank() + 1) % n;
  const int previous = (comm.rank() + n - 1) % n;
  std::vector<T> ring(count);
  comm.group(
      [&] {
        comm.send(mine.data(), count, dtype, next, stream);
        comm.receive(ring.data(), count, dtype, previous, stream);
      },
      stream);
  expect_each(
      ring, 0, count, [&](std::size_t i) { return given(previous, i); }, "send and receive in a group");

  if (n > 1 && comm.rank() == 0) {
    comm.send(mine.data(), count, dtype, 1, stream);
  } else if (comm.rank() == 1) {
    comm.receive(ring.data(), count, dtype, 0, stream);
    expect_each(
        ring, 0, count, [&](std::size_t i) { return given(0, i); }, "send and receive");
  }
}

template <typename T>
void expect_type(Communicator& comm, std::size_t count, DType dtype) {
  SCOPED_TRACE(std::string(name_of(dtype)));
  expect_reductions<T>(comm, count, dtype);
  expect_moves<T>(comm, count, dtype);
}

}  // namespace

void expect_contract(Communicator& comm, std::size_t count) {
  expect_type<float>(comm, count, DType::f32);
  expect_type<double>(comm, count, DType::f64);
  expect_type<bf16>(comm, count, DType::bf16);
  expect_type<std::int64_t>(comm, count, DType::i64);

  EXPECT_EQ(comm.max_of(comm.rank()), comm.size() - 1);
  EXPECT_EQ(comm.broadcast_value(comm.rank() + 0.5, comm.size() - 1), comm.size() - 0.5);
  comm.barrier();
  EXPECT_FALSE(comm.implementation().empty());
  EXPECT_TRUE(comm.poll_error().empty());

  // Odd and even ranks, in reverse order by the key.
  const auto part = comm.split(comm.rank() % 2, -comm.rank());
  const int even = (comm.size() + 1) / 2;
  EXPECT_EQ(part->size(), comm.rank() % 2 ? comm.size() - even : even);
  EXPECT_EQ(part->rank(), part->size() - 1 - comm.rank() / 2);
  EXPECT_EQ(part->max_of(comm.rank()), 2 * (part->size() - 1) + comm.rank() % 2);
}

}  // namespace assay::test
