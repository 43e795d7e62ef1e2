// A bare all-reduce loop over MPI, like the OSU benchmarks and nccl-tests: f32 sums, out of place, back-to-back calls.
//   mpirun -n RANKS allreduce BYTES
// Rank 0 prints one JSON line. A sample is a barrier followed by about 100 us of calls; its value is the time per call
// on the slowest rank. Buffers use huge pages if the kernel provides them. `value` is the median over 1,000 samples (50
// if one takes over 1 ms), `mean` what those programs report.
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// Memory that the caller's thread has touched.
float* buffer_of(std::size_t count, float value) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const std::size_t bytes = (count * sizeof(float) + huge_page - 1) / huge_page * huge_page;
  void* memory = std::aligned_alloc(huge_page, bytes);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::fill_n(static_cast<float*>(memory), count, value);
  return static_cast<float*>(memory);
}

double timed(const float* send, float* receive, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) MPI_Allreduce(send, receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double seconds = MPI_Wtime() - start;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds / calls;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long bytes = argc == 2 ? std::atol(argv[1]) : 0;
  if (bytes < 4) {
    if (rank == 0) std::fprintf(stderr, "usage: allreduce BYTES\n");
    MPI_Finalize();
    return 2;
  }
  const int elements = static_cast<int>(bytes / 4);
  const float* send = buffer_of(static_cast<std::size_t>(elements), static_cast<float>(rank + 1));
  float* receive = buffer_of(static_cast<std::size_t>(elements), 0.0f);

  const double warm_up_until = MPI_Wtime() + 0.2;
  double fastest = 1;
  int more = 1;
  while (more) {
    fastest = std::min(fastest, timed(send, receive, elements, 10));
    more = MPI_Wtime() < warm_up_until;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  // Short enough for most samples to escape interruptions, long enough to hide the skew after the barrier.
  const int calls = std::max(1, static_cast<int>(100e-6 / fastest));
  std::vector<double> samples;
  const int count = fastest * calls > 1e-3 ? 50 : 1000;
  for (int i = 0; i < count; ++i) samples.push_back(timed(send, receive, elements, calls));

  const float sum = static_cast<float>(ranks * (ranks + 1) / 2);
  const bool right = std::all_of(receive, receive + elements, [&](float x) { return x == sum; });
  double mean = 0;
  for (const double sample : samples) mean += sample / static_cast<double>(samples.size());
  std::sort(samples.begin(), samples.end());
  if (rank == 0)
    std::printf("{\"value\": %.6e, \"unit\": \"s\", \"better\": \"lower\", \"mean\": %.6e}\n",
                samples[samples.size() / 2], mean);
  MPI_Finalize();
  return right ? 0 : 1;
}
