// The defaults of every communicator, and loading the modules that provide one.
#include "harness/comm/communicator.h"

#include "harness/comm/mpi_entry.h"
#include "harness/comm/nccl_entry.h"
#include "harness/core/error.h"
#include "harness/core/module.h"

namespace assay {

void Communicator::all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                                std::span<const std::size_t> received, DType dtype, Stream& stream) {
  group(
      [&] {
        const auto* from = static_cast<const char*>(send);
        auto* to = static_cast<char*>(receive);
        for (int r = 0; r < size(); ++r) {
          const auto block = static_cast<std::size_t>(r);
          this->send(from, sent[block], dtype, r, stream);
          this->receive(to, received[block], dtype, r, stream);
          from += sent[block] * size_of(dtype);
          to += received[block] * size_of(dtype);
        }
      },
      stream);
}

double Communicator::max_of(double value) {
  if (size() == 1) return value;
  InlineStream stream;
  double result = 0;
  all_reduce(&value, &result, 1, DType::f64, ReduceOp::max, stream);
  return result;
}

double Communicator::broadcast_value(double value, int root) {
  if (size() == 1) return value;
  InlineStream stream;
  broadcast(&value, &value, 1, DType::f64, root, stream);
  return value;
}

void Communicator::all_gather_host(const void* send, void* receive, std::size_t bytes) {
  InlineStream stream;
  all_gather(send, receive, bytes, DType::u8, stream);
}

std::unique_ptr<Communicator> make_mpi_communicator(MpiThreads threads) {
  if (Module::find("mpi").empty())
    throw Error(
        "libassay-mpi.so is not next to the binary, so more than one rank is not possible: "
        "install Open MPI (Debian: openmpi-bin, libopenmpi-dev) and build again with -DASSAY_MPI=ON");
  try {
    const Module module = Module::load("mpi");
    return std::unique_ptr<Communicator>(module.function<MpiEntry>(mpi_entry_name)(threads, mpi_max_count));
  } catch (const Error& error) {
    throw Error(fmt::format("MPI cannot be used: {} (Debian packages: openmpi-bin, libopenmpi-dev)", error.what()));
  }
}

std::unique_ptr<Communicator> make_nccl_communicator(const NcclWorld& world, const ShareId& share) {
  const Module module = Module::load("cuda");
  return std::unique_ptr<Communicator>(module.function<NcclEntry>(nccl_entry_name)(world, share));
}

}  // namespace assay
