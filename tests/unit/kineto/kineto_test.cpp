// Traces of the PyTorch profiler: reading, the parts of steps by hand-computed values, jobs of several ranks.
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "harness/kineto/gzip.h"
#include "harness/kineto/job.h"
#include "harness/kineto/parts.h"
#include "harness/kineto/reader.h"
#include "harness/kineto/record.h"
#include "harness/kineto/window.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace assay::kineto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Times in microseconds, as in files.
std::string event(const std::string& category, const std::string& name, double start, double duration,
                  const std::string& more = R"("tid": 1)") {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "ts": {:.3f}, "dur": {:.3f}, {}}})", category,
                     name, start, duration, more);
}

std::string profiler_step(int number, double start, double duration) {
  return event("user_annotation", fmt::format("ProfilerStep#{}", number), start, duration);
}

std::string kernel(const std::string& name, double start, double duration, int stream = 7,
                   const std::string& args = "") {
  return event(
      "kernel", name, start, duration,
      fmt::format(R"("tid": {0}, "args": {{"device": 0, "stream": {0}, "correlation": 12{1}}})", stream, args));
}

std::string document(const std::vector<std::string>& events, const std::string& head = "") {
  return fmt::format(
      R"({{"schemaVersion": 1, {} "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [{}], "traceName": "x"}})",
      head, fmt::join(events, ",\n"));
}

std::string of_rank(int rank, int world = 2) {
  return fmt::format(R"("host_name": "box", "distributedInfo": {{"backend": "gloo", "rank": {}, "world_size": {}}},)",
                     rank, world);
}

// In parts of a few bytes, so that a word may be cut anywhere.
RankTrace read(const std::string& text, const std::string& file = "f", const std::string& step = {}) {
  const auto more = [rest = std::string_view(text)](std::string& to) mutable {
    const std::string_view part = rest.substr(0, 13);
    rest.remove_prefix(part.size());
    to += part;
    return !part.empty();
  };
  return read_trace(more, file, step);
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::string gzipped_text(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data()), stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data()), stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(KinetoParts, AMomentCountsForTheFirstLayerThatCoversIt) {
  Ranges first{{30, 40}, {10, 20}, {15, 25}}, second{{0, 12}, {22, 35}, {90, 130}};
  unite(first), unite(second);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].end, 25);
  const std::array<const Ranges*, 2> layers = {&first, &second};
  const std::vector<Range> windows{{5, 35}, {35, 100}, {200, 210}};
  // 10 to 25 and 30 to 35; of the second 5 to 10 and 25 to 30. Then 35 to 40; 90 to 100.
  EXPECT_THAT(divide(windows, layers), ElementsAre(ElementsAre(20, 10), ElementsAre(5, 10), ElementsAre(0, 0)));
}

TEST(KinetoParts, APhaseEndsWhereSomethingElseBegins) {
  const Ranges found = phases({{0, 10}, {12, 20}, {30, 40}, {45, 50}}, {{22, 25}, {41, 43}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].end, 20);
  EXPECT_EQ(found[1].end, 40);
}

TEST(KinetoTrace, AGpuComputesThenCommunicatesThenCopies) {
  const RankTrace trace = read(document(
      {profiler_step(4, 0, 1000), profiler_step(5, 1000, 500),
       event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 300),
       event("cpu_op", "aten::mm", 300, 20), kernel("mm(float*, int)", 200, 300), kernel("add(float*)", 400, 200, 8),
       kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 500, 300, 9),
       event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 750, 100),
       event("gpu_memset", "Memset (Device)", 900, 50), event("gpu_user_annotation", "ProfilerStep#4", 0, 2000),
       event("cuda_runtime", "cudaLaunchKernel", 190, 5), kernel("mm(float*, int)", 1400, 200)},
      R"("deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1}],)"));
  ASSERT_EQ(trace.steps.size(), 2u);
  const TracedStep& step = trace.steps.front();
  EXPECT_EQ(step.number, 4);
  EXPECT_NEAR(step.compute, 400e-6, 1e-12);        // 200 to 600, on two streams
  EXPECT_NEAR(step.communication, 200e-6, 1e-12);  // 600 to 800: before, it computes
  EXPECT_NEAR(step.copies, 100e-6, 1e-12);         // 800 to 850, and 900 to 950
  EXPECT_NEAR(step.data, 200e-6, 1e-12);           // until the first kernel
  EXPECT_NEAR(step.host, 100e-6, 1e-12);
  EXPECT_NEAR(trace.steps[1].compute, 100e-6, 1e-12);  // a kernel that goes on behind the step
  EXPECT_NEAR(trace.steps[1].host, 400e-6, 1e-12);
  EXPECT_TRUE(trace.gpu);
  EXPECT_FALSE(trace.loads_itself);
  EXPECT_EQ(trace.device, "NVIDIA H100");
  EXPECT_NEAR(trace.pageable_share, 2.0 / 3, 1e-9);
  ASSERT_EQ(trace.uses.size(), 5u);  // of the GPU alone
  EXPECT_EQ(trace.uses.front().name, "mm(float*, int)");
  EXPECT_EQ(trace.uses.front().calls, 2);
  EXPECT_NEAR(trace.uses.front().seconds, 500e-6, 1e-12);
  ASSERT_EQ(trace.collectives.size(), 1u);
  EXPECT_EQ(trace.collectives.begin()->first, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
}

TEST(KinetoTrace, WithoutAGpuTheThreadOfTheStepsIsDivided) {
  const std::string engine = "autograd::engine::evaluate_function: MmBackward0";
  const RankTrace trace = read(
      document({profiler_step(2, 0, 1000),
                event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 90),
                event("cpu_op", "aten::randn", 20, 30), event("cpu_op", "aten::linear", 150, 100),
                event("cpu_op", "aten::addmm", 160, 80), event("cpu_op", engine, 300, 100),
                event("cpu_op", "MmBackward0", 310, 50), event("cpu_op", engine, 420, 80),
                event("user_annotation", "Optimizer.step#SGD.step", 700, 100), event("cpu_op", "aten::add_", 710, 50),
                event("python_function", "torch/serialization.py(967): save", 900, 50),
                event("user_annotation", "gloo:all_reduce", 450, 230, R"("tid": 5)"),
                event("cpu_op", "aten::mul", 0, 900, R"("tid": 6)")}));
  ASSERT_EQ(trace.steps.size(), 1u);
  const TracedStep& step = trace.steps.front();
  EXPECT_NEAR(step.data, 90e-6, 1e-12);
  EXPECT_NEAR(step.backward, 200e-6, 1e-12);       // 300 to 500, with the gap between two functions
  EXPECT_NEAR(step.communication, 180e-6, 1e-12);  // 500 to 680: before, backward goes on
  EXPECT_NEAR(step.optimizer, 100e-6, 1e-12);
  EXPECT_NEAR(step.checkpoint, 50e-6, 1e-12);
  EXPECT_NEAR(step.forward, 380e-6, 1e-12);
  EXPECT_TRUE(trace.loads_itself);
  // Operators without those that they call.
  std::map<std::string, double> own;
  for (const TracedUse& use : trace.uses) own[use.name] = use.seconds;
  EXPECT_NEAR(own.at("aten::linear"), 20e-6, 1e-12);
  EXPECT_NEAR(own.at("aten::addmm"), 80e-6, 1e-12);
  EXPECT_NEAR(own.at(engine), 130e-6, 1e-12);
}

// An operator on two matrices, by the ids that join it with its kernels.
std::string product_event(const std::string& name, double start, double duration, int id, int m, int k, int n,
                          const std::string& type = "c10::BFloat16") {
  return event(
      "cpu_op", name, start, duration,
      fmt::format(R"("tid": 1, "args": {{"External id": {0}, "Concrete Inputs": ["", ""], "Input type": ["{1}", "{1}"],
               "Input Strides": [[{3}, 1], [{4}, 1]], "Input Dims": [[{2}, {3}], [{3}, {4}]]}})",
                  id, type, m, k, n));
}

const TracedWork* work_of_use(const RankTrace& trace, const std::string& name) {
  for (const TracedUse& use : trace.uses)
    if (use.name == name) return use.work ? &*use.work : nullptr;
  ADD_FAILURE() << name;
  return nullptr;
}

TEST(KinetoTrace, KernelsHaveTheWorkOfTheOperatorsThatLaunchedThem) {
  const auto of = [](int id, const std::string& more = "") {
    return fmt::format(R"(, "External id": {}{})", id, more);
  };
  const std::string head = R"("deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],)";
  const RankTrace trace = read(document(
      {profiler_step(1, 0, 10000), product_event("aten::mm", 10, 100, 5, 4096, 4096, 4096),
       event("cpu_op", "aten::empty", 20, 10, R"("tid": 1, "args": {"External id": 6})"),
       event("cpu_op", "aten::mul", 200, 10, R"("tid": 1, "args": {"External id": 7})"),
       product_event("aten::mm", 300, 50, 8, 64, 4096, 4096), product_event("aten::mm", 400, 50, 12, 10, 20, 30),
       // Under autocast: the outer call has its operands in f32.
       product_event("aten::mm", 500, 90, 20, 4096, 4096, 4096, "float"),
       event("cpu_op", "aten::to", 505, 10, R"("tid": 1, "args": {"External id": 21})"),
       product_event("aten::mm", 520, 50, 22, 4096, 4096, 4096), kernel("gemm", 1000, 200, 7, of(5)),
       kernel("reduce", 1200, 50, 7, of(6)), kernel("mul", 1300, 40, 7, of(7)), kernel("thin", 1400, 20, 7, of(8)),
       kernel("cast", 1500, 30, 7, of(21)), kernel("gemm", 1600, 250, 7, of(22)),
       kernel("old", 2000, 10, 7, R"(, "External id": 12)")},
      head));
  // Two products in 500 us, with what adds up their partial sums; the cast is none of them.
  const double flops = 2.0 * 4096 * 4096 * 4096, bytes = 2.0 * 3 * 4096 * 4096;
  const TracedWork* gemm = work_of_use(trace, "gemm");
  ASSERT_TRUE(gemm);
  EXPECT_DOUBLE_EQ(gemm->flops, 2 * flops);
  EXPECT_DOUBLE_EQ(gemm->bytes, 2 * bytes);
  EXPECT_NEAR(gemm->seconds, 500e-6, 1e-12);
  EXPECT_EQ(gemm->dtype, "bf16");
  EXPECT_NEAR(*gemm->of_bound(), 2 * flops / 9.89e14 / 500e-6, 1e-9);
  EXPECT_STREQ(gemm->bound_by(), "peak");
  const TracedWork* thin = work_of_use(trace, "thin");
  ASSERT_TRUE(thin);
  const double thin_bytes = 2.0 * (64 * 4096 + 4096 * 4096 + 64 * 4096);
  EXPECT_NEAR(*thin->of_bound(), thin_bytes / 3.35e12 / 20e-6, 1e-9);
  EXPECT_STREQ(thin->bound_by(), "memory");
  for (const char* name : {"reduce", "mul", "cast", "old"}) EXPECT_FALSE(work_of_use(trace, name)) << name;
  EXPECT_EQ(trace.no_work, "");

  const Job job = job_of({trace});
  ASSERT_TRUE(job.uses.front().work);
  EXPECT_DOUBLE_EQ(job.uses.front().work->flops, 2 * flops);  // there is one step
}

TEST(KinetoTrace, OperatorsHaveTheirOwnWork) {
  const RankTrace trace = read(document({profiler_step(1, 0, 1000), product_event("aten::mm", 10, 100, 5, 10, 20, 30),
                                         event("cpu_op", "aten::copy_", 20, 10), event("cpu_op", "aten::add", 200, 10),
                                         product_event("aten::mm", 300, 100, 6, 10, 20, 30, "float")}));
  const TracedWork* mm = work_of_use(trace, "aten::mm");
  ASSERT_TRUE(mm);
  EXPECT_DOUBLE_EQ(mm->flops, 2 * 12000);
  EXPECT_DOUBLE_EQ(mm->bytes, 6 * (200 + 600 + 300));
  EXPECT_NEAR(mm->seconds, 200e-6, 1e-12);  // with what it called
  EXPECT_EQ(mm->dtype, "");                 // bf16 and f32
  EXPECT_FALSE(mm->least);
  EXPECT_FALSE(work_of_use(trace, "aten::add"));
}

TEST(KinetoTrace, WithoutShapesNothingIsSaidOfWork) {
  const Job job = job_of({read(document({profiler_step(1, 0, 1000), event("cpu_op", "aten::mm", 10, 100)}), "a.json")});
  EXPECT_FALSE(job.uses.front().work);
  EXPECT_THAT(job.remarks,
              ElementsAre("a.json: it has no shapes of operators, so no FLOP/s: profile(record_shapes=True) "
                          "records them"));
  const Job unlinked = job_of({read(
      document({profiler_step(1, 0, 1000), product_event("aten::mm", 10, 100, 121, 4, 5, 6), kernel("gemm", 100, 5)}),
      "b.json")});
  EXPECT_FALSE(unlinked.uses.front().work);
  EXPECT_THAT(unlinked.remarks,
              ElementsAre("b.json: its kernels do not say which operator launched them, so no FLOP/s"));
}

TEST(KinetoTrace, OtherRangesCanBeSteps) {
  const std::string text =
      document({event("user_annotation", "train_step", 500, 100), event("user_annotation", "train_step", 0, 400),
                event("user_annotation", "trainer", 0, 900), event("cpu_op", "aten::mm", 100, 50),
                event("cpu_op", "aten::mm", 450, 20)});
  const RankTrace trace = read(text, "f", "train_step");
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_NEAR(trace.steps[0].total, 400e-6, 1e-12);
  ASSERT_EQ(trace.uses.size(), 1u);
  EXPECT_EQ(trace.uses[0].calls, 1);  // between two steps does not count
  EXPECT_THAT(refusal_of([&] { read(text); }), HasSubstr("f: has no range ProfilerStep#N"));
  EXPECT_THAT(refusal_of([&] { read(text, "f", "train_stp"); }), HasSubstr("did you mean \"train_step\"?"));
}

TEST(KinetoTrace, WhatIsNoWholeTraceIsRefused) {
  const std::string good = document({profiler_step(1, 0, 10), event("cpu_op", "aten::mm", 1, 2)});
  EXPECT_EQ(refusal_of([] { read(""); }), "f: is empty");
  EXPECT_THAT(refusal_of([&] { read(good.substr(0, good.size() - 40)); }),
              HasSubstr("f: was cut off at line 2, column"));
  EXPECT_THAT(refusal_of([] { read("[1, 2"); }), HasSubstr("f: line 1, column 6: syntax error"));
  EXPECT_THAT(refusal_of([] { read(R"({"a": 1})"); }), HasSubstr("has no traceEvents"));
  EXPECT_THAT(refusal_of([] { read(document({})); }), HasSubstr("has no events"));
  EXPECT_THAT(refusal_of([] { read(document({R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1})"})); }),
              HasSubstr("event 1 (\"k\") has no valid dur"));
  EXPECT_THAT(refusal_of([] {
                read(document({profiler_step(1, 0, 10), profiler_step(2, 5, 10)}));
              }),
              HasSubstr("its steps 1 and 2 overlap"));
}

TEST(KinetoTrace, GzippedTextIsRead) {
  const std::string good = document({profiler_step(1, 0, 10)}), packed = gzipped_text(good);
  EXPECT_EQ(read(packed).steps.size(), 1u);
  EXPECT_EQ(read(gzipped_text(good.substr(0, 50)) + gzipped_text(good.substr(50))).steps.size(), 1u);
  EXPECT_EQ(refusal_of([&] { read(packed.substr(0, packed.size() - 12)); }),
            "f: was cut off: its gzip stream has no end");
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(~damaged[packed.size() / 2]);
  EXPECT_THAT(refusal_of([&] { read(damaged); }), HasSubstr("f: "));
}

// Rank 1 computes 40 us longer, and rank 0 waits for it in its all-reduce.
std::vector<RankTrace> two_ranks() {
  std::vector<RankTrace> ranks;
  for (int rank = 1; rank >= 0; --rank) {
    std::vector<std::string> events;
    for (int i = 0; i < 6; ++i) {
      const double start = 100.0 * i, late = rank == 1 ? 40 : 0;
      events.push_back(profiler_step(i, start, 100));
      events.push_back(kernel("mm", start, 40 + late));
      events.push_back(kernel("ncclKernel_AllReduce", start + 40 + late, 50 - late, 9,
                              R"(, "Collective name": "allreduce", "Process Group Name": "3")"));
    }
    ranks.push_back(read(document(events, of_rank(rank)), fmt::format("rank{}", rank)));
  }
  return ranks;
}

TEST(KinetoJob, TheRankThatOthersWaitForIsNamed) {
  const Job job = job_of(two_ranks());
  EXPECT_EQ(job.ranks.front().file, "rank0");
  EXPECT_NEAR(job.steps.step, 100e-6, 1e-9);
  ASSERT_TRUE(job.steps.straggler);
  EXPECT_EQ(job.steps.straggler->rank, 1);
  EXPECT_NEAR(job.steps.straggler->saved, 40e-6, 1e-9);
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].name, "allreduce of group 3");
  EXPECT_NEAR(job.collectives[0].transfer, 10e-6, 1e-9);
  EXPECT_NEAR(job.collectives[0].skew, 40e-6, 1e-9);
  EXPECT_EQ(job.collectives[0].last, 1);
  EXPECT_NEAR(job.collectives[0].calls, 1, 1e-9);
  ASSERT_FALSE(job.found.empty());
  EXPECT_EQ(job.found.front().rule, "imbalance");
  const Record record = record_of(job, "my/job");
  EXPECT_EQ(record.key, "command/name=my_job");
  double sum = 0;
  for (const auto& [name, seconds] : record.spans)
    if (!name.starts_with("rank ")) sum += seconds;
  EXPECT_NEAR(sum, 100e-6, 1e-9);
  EXPECT_EQ(record.world_ranks, 2);
}

TEST(KinetoJob, CopiesAndLaunchesThatAGpuWaitsFor) {
  std::vector<std::string> events;
  for (int i = 0; i < 4; ++i) {
    const double start = 100.0 * i;
    events.push_back(profiler_step(i, start, 100));
    events.push_back(event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", start, 20));
    events.push_back(kernel("mm", start + 20, 50));
  }
  const Job job = job_of({read(document(events))});
  ASSERT_EQ(job.found.size(), 2u);
  EXPECT_EQ(job.found[0].rule, "launch-bound");
  EXPECT_NEAR(job.found[0].gain, 1 / 0.7, 1e-9);
  EXPECT_EQ(job.found[1].rule, "copy-bound");
  EXPECT_THAT(job.found[1].change, HasSubstr("100 % of it from or to pageable memory -> pin_memory=True"));
  EXPECT_THAT(not_the_cause(job), ElementsAre("data (0.0 %)"));
}

// Of a watched job whose steps take 80 us, and 100 us while they are recorded.
TEST(KinetoWindow, TellsWhatOnlyATraceTells) {
  std::vector<std::string> events;
  for (int i = 12; i < 15; ++i) {
    events.push_back(profiler_step(i, 100.0 * i, 100));
    events.push_back(event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 100.0 * i, 20));
    events.push_back(kernel("mm", 100.0 * i + 20, 59));
  }
  const std::filesystem::path folder = testing::TempDir();
  std::ofstream(folder / "whole.json") << document(events);
  std::ofstream(folder / "cut.json") << document(events).substr(0, 700);
  compress(folder / "whole.json", folder / "rank0.json.gz");
  watch::JobSteps steps;
  steps.summary.median = 80e-6;
  const auto window = trace_reader().read(
      {{0, "", folder / "rank0.json.gz"}, {1, "", folder / "cut.json"}, {2, "", folder / "none"}}, steps, true);
  EXPECT_EQ(window.steps, "12 to 14");
  ASSERT_EQ(window.found.size(), 1u);  // not launch-bound: its host is 21 us longer, 20 of which are the profiler's
  EXPECT_EQ(window.found[0].rule, "copy-bound");
  EXPECT_EQ(window.spans.size(), 5u);
  for (const auto& [name, seconds] : window.spans)
    if (name == "window gpu_idle:step") {
      EXPECT_NEAR(seconds, 1e-6, 1e-9);
    }
  EXPECT_THAT(window.text, HasSubstr("steps 12 to 14, recorded by torch.profiler, took 1.25 times as long as others"));
  EXPECT_THAT(window.text, HasSubstr("59 us of a step in 1.0 x mm"));
  EXPECT_EQ(window.trace.at("uses").size(), 2u);
  EXPECT_THAT(window.remarks, ElementsAre(HasSubstr("Not seen: the trace of rank 1: was cut off"),
                                          HasSubstr("Not seen: the trace of rank 2: cannot read")));

  std::ofstream(folder / "cpu.json") << document({profiler_step(12, 0, 100), event("cpu_op", "aten::mm", 10, 50)});
  const auto host = trace_reader().read({{0, "", folder / "cpu.json"}}, steps, true);
  EXPECT_THAT(host.remarks, testing::Contains(HasSubstr("Not seen: kernels: the traces have none")));
  EXPECT_TRUE(host.found.empty() && host.spans.empty());
  EXPECT_THAT(host.text, HasSubstr("aten::mm"));
  const auto none = trace_reader().read({{0, "", folder / "cut.json"}}, steps, false);
  EXPECT_TRUE(none.text.empty() && none.steps.empty() && none.trace.is_null());
  EXPECT_THROW(compress(folder / "none", folder / "copy"), Error);
  EXPECT_THROW(compress(folder / "cpu.json", folder / "no" / "folder"), Error);
}

TEST(KinetoJob, FilesThatAreNoRanksOfOneJobAreRefused) {
  const std::string steps = profiler_step(1, 0, 10);
  const auto trace = [&](const std::string& file, const std::string& head, const std::string& event = {}) {
    return read(document({event.empty() ? steps : event}, head), file);
  };
  EXPECT_EQ(refusal_of([&] { job_of({trace("a", of_rank(1)), trace("b", of_rank(1))}); }), "b: is of rank 1, as a is");
  EXPECT_EQ(refusal_of([&] { job_of({trace("a", of_rank(2))}); }), "a: distributedInfo: is of rank 2 of 2");
  EXPECT_EQ(refusal_of([&] {
              job_of({trace("a", of_rank(0)), trace("b", of_rank(1, 4))});
            }),
            "b: is of another job than a: of 4 ranks, not 2");
  EXPECT_THAT(refusal_of([&] {
                job_of({trace("a", of_rank(0)), trace("b", of_rank(1), profiler_step(1, 1e6, 10))});
              }),
              HasSubstr("b: is of another job than a: its steps are 1 s apart"));
  EXPECT_THAT(refusal_of([&] {
                job_of({trace("a", of_rank(0)), trace("b", of_rank(1), profiler_step(7, 0, 10))});
              }),
              HasSubstr("b: has steps 7 to 7, none of those of a: 1 to 1"));
  // Without ranks, in the order of the files; one of two that say two is an incomplete job.
  EXPECT_EQ(*job_of({trace("a", ""), trace("b", "")}).ranks[1].rank, 1);
  EXPECT_THAT(job_of({trace("a", of_rank(0))}).remarks, ElementsAre("1 of 2 ranks: nothing is known of the others"));
}

}  // namespace
}  // namespace assay::kineto
