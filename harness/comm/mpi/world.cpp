// Initialising and finalising MPI, and the module's only export.
#include "harness/comm/mpi/communicator.h"
#include "harness/comm/mpi/transport.h"
#include "harness/comm/mpi_entry.h"
#include "harness/core/error.h"

#include <cstdlib>

namespace assay::mpi {

namespace {

void finalize_at_exit() {
  int finalized = 0;
  if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) MPI_Finalize();
}

void initialize(MpiThreads threads) {
  int initialized = 0;
  check(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized) return;
  // Plain MPI programs and the OSU benchmarks run at MPI_THREAD_SINGLE.
  const int wanted = threads == MpiThreads::single ? MPI_THREAD_SINGLE : MPI_THREAD_SERIALIZED;
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread");
  std::atexit(finalize_at_exit);
  if (provided < wanted) throw Error("this MPI may be called by one thread only (no MPI_THREAD_SERIALIZED)");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

// The number of hosts: every host's first rank counts one.
int count_nodes() {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  int rank = 0;
  check(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
  MPI_Comm_free(&node);
  const int first = rank == 0 ? 1 : 0;
  int nodes = 0;
  check(MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
  return nodes;
}

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string all(text, text + length);
  // "Open MPI v4.1.4, package: ..., ident: ...": up to the comma; other libraries: the first line.
  std::string word = all.substr(0, all.find_first_of(",\n"));
  if (const auto v = word.find("MPI v"); v != std::string::npos) word.erase(v + 4, 1);
  return word;
}

}  // namespace

World::World() : nodes_(count_nodes()) {}

const std::string& World::implementation() const {
  if (implementation_.empty()) {
    implementation_ = library();
    if (const std::string words = transport(nodes_); !words.empty()) implementation_ += ", " + words;
  }
  return implementation_;
}

}  // namespace assay::mpi

extern "C" assay::Communicator* assay_mpi_communicator(assay::MpiThreads threads, std::size_t max_count) {
  using namespace assay::mpi;
  initialize(threads);
  static const auto world = std::make_shared<const World>();
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return new MpiCommunicator(comm, world, max_count);
}
