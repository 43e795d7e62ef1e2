// The communicator's contract over MPI; started by mpirun, one process per rank.
#include "harness/comm/mpi_entry.h"
#include "harness/core/error.h"
#include "harness/core/module.h"
#include "tests/support/communicator_contract.h"
#include "tests/support/thread_communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace assay {
namespace {

TEST(MpiCommunicator, KeepsTheContract) {
  const auto comm = make_mpi_communicator();
  EXPECT_EQ(std::to_string(comm->size()), std::getenv("ASSAY_TEST_RANKS"));
  for (const std::size_t count : {0, 1, 2, 1000, 100000}) test::expect_contract(*comm, count);
}

// As the gradient reducer does: calls from a second thread, alternating with those of the first.
TEST(MpiCommunicator, TakesCallsFromASecondThread) {
  const auto comm = make_mpi_communicator();
  for (int round = 0; round < 3; ++round) {
    std::thread([&] { test::expect_contract(*comm, 1000); }).join();
    test::expect_contract(*comm, 1000);
  }
}

// Counts beyond what MPI can take, made testable by a small limit: every call goes through its pieces.
TEST(MpiCommunicator, KeepsTheContractInPieces) {
  const auto entry = Module::load("mpi").function<MpiEntry>(mpi_entry_name);
  for (const std::size_t limit : {64, 1000}) {
    const std::unique_ptr<Communicator> comm(entry(MpiThreads::single, limit));
    for (const std::size_t count : {64, 1000, 1001, 3999}) test::expect_contract(*comm, count);
  }
}

TEST(MpiCommunicator, ErrorsNameTheCallAndMpisMessage) {
  const auto comm = make_mpi_communicator();
  InlineStream stream;
  float x = 0;
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { comm->broadcast(&x, &x, 1, DType::f32, comm->size(), stream); }),
            "MPI_Bcast: MPI_ERR_ROOT: invalid root");
  EXPECT_EQ(message([&] { comm->send(&x, 1, DType::f32, comm->size(), stream); }),
            "MPI_Send: MPI_ERR_RANK: invalid rank");
  EXPECT_EQ(message([&] { comm->all_reduce(&x, &x, 1, DType::fp16, ReduceOp::sum, stream); }),
            "MPI cannot reduce fp16");
  comm->barrier();
}

TEST(MpiCommunicator, NamesItsImplementation) {
  const auto comm = make_mpi_communicator();
  EXPECT_NE(comm->implementation().find("MPI"), std::string::npos) << comm->implementation();
  RecordProperty("implementation", comm->implementation());
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // MPI starts at the thread level of the first call: here the one that training needs. The suites' programs use the
  // other.
  const auto first = assay::make_mpi_communicator(assay::MpiThreads::serialized);
  return RUN_ALL_TESTS();
}
