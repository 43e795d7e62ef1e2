// The defaults of every communicator, and loading the modules that provide one.
#include "harness/comm/communicator.h"

#include "harness/comm/mpi_entry.h"
#include "harness/comm/nccl_entry.h"
#include "harness/core/error.h"
#include "harness/core/module.h"

namespace assay {

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
