// The collective suite's arithmetic, and its answers compared with collectives between threads.
#include "harness/core/error.h"
#include "harness/plan/params.h"
#include "suites/collective/answer.h"
#include "suites/collective/layout.h"
#include "tests/support/thread_communicator.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace assay::collective {
namespace {

TEST(Layout, CountsAsNcclTests) {
  const auto counts = [](Op op, std::size_t bytes, int ranks) {
    const Layout l = layout_of(op, bytes, DType::f32, ranks);
    return std::vector<std::size_t>{l.count, l.send, l.receive, l.bytes};
  };
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(counts(Op::all_reduce, 1024, 4), (Counts{256, 256, 256, 1024}));
  EXPECT_EQ(counts(Op::all_gather, 1024, 4), (Counts{64, 64, 256, 1024}));
  EXPECT_EQ(counts(Op::reduce_scatter, 1024, 4), (Counts{64, 256, 64, 1024}));
  EXPECT_EQ(counts(Op::all_to_all, 1024, 4), (Counts{64, 256, 256, 1024}));
  EXPECT_EQ(counts(Op::broadcast, 1026, 4), (Counts{256, 256, 256, 1024}));
  EXPECT_EQ(counts(Op::all_gather, 1000, 3), (Counts{83, 83, 249, 996}));     // rounded down
  EXPECT_EQ(counts(Op::all_to_all_v, 1024, 4), (Counts{9, 144, 252, 1008}));  // 7, 5, 3, 1 units to four ranks
  EXPECT_EQ(counts(Op::all_to_all_v, 1024, 9), (Counts{1, 79, 135, 540}));    // the ninth gets as much as the first
  EXPECT_EQ(counts(Op::all_to_all, 8, 4), (Counts{0, 0, 0, 0}));
}

TEST(Layout, BusFactors) {
  EXPECT_DOUBLE_EQ(*bus_factor(Op::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(*bus_factor(Op::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(*bus_factor(Op::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(*bus_factor(Op::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(*bus_factor(Op::all_to_all_v, 4), 0.75);
  EXPECT_DOUBLE_EQ(*bus_factor(Op::broadcast, 4), 1.0);
  EXPECT_DOUBLE_EQ(*bus_factor(Op::send_recv, 4), 1.0);
  for (int op = 0; op < op_count; ++op) {
    EXPECT_FALSE(bus_factor(static_cast<Op>(op), 1));
    Params params;
    params.set("op", word_of(static_cast<Op>(op)));
    EXPECT_EQ(params.choice<Op>("op"), static_cast<Op>(op));
  }
  Params unknown;
  unknown.set("op", std::string("reduce"));
  EXPECT_THROW(static_cast<void>(unknown.choice<Op>("op")), Error);
}

struct Given {
  Op op;
  DType dtype;
  int ranks;
  bool in_place;
};

void call(Communicator& comm, const Given& given, const Layout& layout, void* send, void* receive) {
  InlineStream stream;
  const std::size_t count = layout.count;
  switch (given.op) {
    case Op::all_reduce: return comm.all_reduce(send, receive, count, given.dtype, ReduceOp::sum, stream);
    case Op::all_gather: return comm.all_gather(send, receive, count, given.dtype, stream);
    case Op::reduce_scatter: return comm.reduce_scatter(send, receive, count, given.dtype, ReduceOp::sum, stream);
    case Op::all_to_all: return comm.all_to_all(send, receive, count, given.dtype, stream);
    case Op::broadcast: return comm.broadcast(send, receive, count, given.dtype, 0, stream);
    case Op::all_to_all_v: {
      std::vector<std::size_t> sent;
      for (int to = 0; to < comm.size(); ++to) sent.push_back(count * skewed_units(to, comm.size()));
      const std::vector<std::size_t> received(sent.size(), sent[static_cast<std::size_t>(comm.rank())]);
      return comm.all_to_all_v(send, sent, receive, received, given.dtype, stream);
    }
    case Op::send_recv:
      return comm.group(
          [&] {
            comm.send(send, count, given.dtype, (comm.rank() + 1) % comm.size(), stream);
            comm.receive(receive, count, given.dtype, (comm.rank() + comm.size() - 1) % comm.size(), stream);
          },
          stream);
  }
}

Wrong check_receive(const Answer& answer, const Layout& layout, const void* receive, bool in_place) {
  Wrong wrong;
  answer.check_receive(wrong, receive, in_place, 0, std::max(in_place ? layout.send : 0, layout.receive));
  return wrong;
}
std::uint64_t changed(const Answer& answer, const Layout& layout, const void* send) {
  Wrong wrong;
  answer.check_send(wrong, send, 0, layout.send);
  return wrong.count;
}

class Answers : public testing::TestWithParam<Given> {};

// On each rank the check passes after the call; it fails if one element is wrong, if the call never ran, and on the
// result of another seed.
TEST_P(Answers, RightResultsPassAndInjectedFaultsAreCounted) {
  const Given given = GetParam();
  constexpr std::size_t bytes = 1200000;  // more than one period of the pattern in every type
  test::run_ranks(given.ranks, [&](Communicator& comm) {
    const Layout layout = layout_of(given.op, bytes, given.dtype, given.ranks);
    const std::size_t element = size_of(given.dtype);
    const auto answer = make_answer(given.op, given.dtype, layout, comm.rank(), given.ranks, 7);
    std::vector<char> send(layout.send * element), receive(std::max(layout.send, layout.receive) * element);
    if (given.in_place) {
      answer->fill_in_place(receive.data(), 0, std::max(layout.send, layout.receive));
      call(comm, given, layout, receive.data(), receive.data());
    } else {
      answer->fill_send(send.data(), 0, layout.send);
      std::ranges::fill(receive, static_cast<char>(0xff));
      EXPECT_GT(check_receive(*answer, layout, receive.data(), false).count, 0u) << "no call, and nothing seen";
      call(comm, given, layout, send.data(), receive.data());
      EXPECT_EQ(changed(*answer, layout, send.data()), 0u);
    }
    EXPECT_EQ(check_receive(*answer, layout, receive.data(), given.in_place).count, 0u);

    const auto other = make_answer(given.op, given.dtype, layout, comm.rank(), given.ranks, 8);
    EXPECT_GT(check_receive(*other, layout, receive.data(), given.in_place).count, 0u);

    answer->corrupt(receive.data() + answer->corruptible(given.in_place) * element);
    const Wrong wrong = check_receive(*answer, layout, receive.data(), given.in_place);
    EXPECT_EQ(wrong.count, 1u);
    ASSERT_EQ(wrong.detail.size(), 1u);
    EXPECT_NE(wrong.detail[0].find(fmt::format("element {}", layout.count / 2)), std::string::npos) << wrong.detail[0];

    if (!given.in_place) {
      send[send.size() / 2] = static_cast<char>(send[send.size() / 2] ^ 4);
      EXPECT_EQ(changed(*answer, layout, send.data()), 1u);
    }
  });
}

std::vector<Given> every_answer() {
  std::vector<Given> all;
  for (int op = 0; op < op_count; ++op)
    for (const DType dtype : {DType::f32, DType::bf16, DType::i64})
      for (const int ranks : {1, 2, 3})
        for (const bool in_place : {false, true})
          if (!in_place || has_in_place(static_cast<Op>(op)))
            all.push_back({static_cast<Op>(op), dtype, ranks, in_place});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Answers, testing::ValuesIn(every_answer()), [](const auto& given) {
  return fmt::format("{}_{}_{}_ranks{}", word_of(given.param.op), assay::name_of(given.param.dtype), given.param.ranks,
                     given.param.in_place ? "_in_place" : "");
});

TEST(AnswerOfAllGather, BlocksInTheWrongOrderAreDetected) {
  const Layout layout = layout_of(Op::all_gather, 4096, DType::f32, 2);
  const auto answer = make_answer(Op::all_gather, DType::f32, layout, 0, 2, 1);
  std::vector<float> receive(layout.receive);
  test::run_ranks(2, [&](Communicator& comm) {
    const auto own = make_answer(Op::all_gather, DType::f32, layout, comm.rank(), 2, 1);
    std::vector<float> send(layout.send), got(layout.receive);
    own->fill_send(send.data(), 0, layout.send);
    InlineStream stream;
    comm.all_gather(send.data(), got.data(), layout.count, DType::f32, stream);
    if (comm.rank() == 0) receive = got;
  });
  EXPECT_EQ(check_receive(*answer, layout, receive.data(), false).count, 0u);
  std::swap_ranges(receive.begin(), receive.begin() + 512, receive.begin() + 512);
  EXPECT_GT(check_receive(*answer, layout, receive.data(), false).count, 900u);
}

}  // namespace
}  // namespace assay::collective
