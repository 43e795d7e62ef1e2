// What records say of ports, on a folder of the kernel's files whose counters grow during a case.
#include "harness/run/case_errors.h"
#include "harness/record/flags.h"
#include "tests/support/thread_communicator.h"
#include "tests/unit/machine/fake_root.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A host of two GPUs, each beside a port; each rank uses one and moves 4,000 bytes both ways.
class CasePorts : public testing::Test {
 protected:
  CasePorts() {
    setenv("ASSAY_ROOT", fake_.path().c_str(), 1);
    unsetenv("NCCL_IB_HCA");
    for (const char* bridge : {"0", "1"})
      for (const std::string name : {std::string("0000:1") + bridge + ":00.0", std::string("mlx5_") + bridge}) {
        const auto place = fmt::format("sys/devices/pci0000:00/{}/{}", bridge, name);
        fake_.file(place + "/class", "0");
        const bool port = name.starts_with("mlx5");
        fake_.link(port ? "sys/class/infiniband/" + name + "/device" : "sys/bus/pci/devices/" + name,
                   fake_.path() / place);
      }
  }
  ~CasePorts() override { unsetenv("ASSAY_ROOT"); }

  void count(int port, int sent_words, int received_words) {
    const auto folder = fmt::format("sys/class/infiniband/mlx5_{}/ports/1/counters/", port);
    fake_.file(folder + "port_xmit_data", std::to_string(sent_words));
    fake_.file(folder + "port_rcv_data", std::to_string(received_words));
  }

  // The record of the host's first rank, if the ports count so many words before and after the case.
  Record record(std::array<int, 2> before, std::array<int, 2> after, bool rails = true, int nodes = 2) {
    for (int port = 0; port < 2; ++port) count(port, before[static_cast<std::size_t>(port)], 7);
    Record first;
    test::run_ranks(2, [&](Communicator& comm) {
      const std::string pci = fmt::format("0000:1{}:00.0", comm.rank());
      CaseErrors errors;
      errors.begin("", pci, comm.rank() == 0);
      comm.barrier();
      for (int port = 0; comm.rank() == 0 && port < 2; ++port) count(port, after[static_cast<std::size_t>(port)], 2007);
      if (rails) errors.expect({4000, 4000}, pci, comm);
      Record own;
      own.world_nodes = nodes;
      errors.record(own);
      if (comm.rank() == 0)
        first = own;
      else
        EXPECT_THAT(own.ports, IsEmpty()) << "the host's first rank reads them";
    });
    return first;
  }
  FakeRoot fake_;
};

TEST_F(CasePorts, APortThatDidNotCarryItsRailIsFlagged) {
  const Record seen = record({100, 100}, {1150, 110});  // 4,200 and 40 bytes
  ASSERT_EQ(seen.ports.size(), 2u);
  EXPECT_EQ(seen.ports[0].sent, 4200);
  EXPECT_EQ(seen.ports[0].received, 8000);
  EXPECT_DOUBLE_EQ(*seen.ports[0].share, 1.05);
  EXPECT_FALSE(seen.ports[0].too_little());
  EXPECT_DOUBLE_EQ(*seen.ports[1].share, 0.01);
  EXPECT_TRUE(seen.ports[1].too_little());
  EXPECT_THAT(seen.flags, ElementsAre(testing::StartsWith("idle port: mlx5_1 port 1 on ")));
}

TEST_F(CasePorts, OtherCasesReportTheirTrafficOnly) {
  const Record seen = record({100, 100}, {1150, 110}, false);
  ASSERT_EQ(seen.ports.size(), 2u);
  EXPECT_FALSE(seen.ports[1].share);
  EXPECT_THAT(seen.flags, IsEmpty());
  EXPECT_THAT(record({100, 100}, {1150, 110}, false, 1).ports, IsEmpty()) << "one host";
}

TEST_F(CasePorts, PortsThatCannotBeReadProveNothing) {
  EXPECT_EQ(record({500, 100}, {1, 1200}).ports.size(), 1u) << "the first was cleared meanwhile";
  for (const char* port : {"mlx5_0", "mlx5_1"})  // as an EFA
    fake_.remove(fmt::format("sys/class/infiniband/{}/ports/1/counters", port))
        .file(fmt::format("sys/class/infiniband/{}/ports/1/hw_counters/tx_bytes", port), "1");
  test::run_ranks(2, [&](Communicator& comm) {
    CaseErrors errors;
    errors.begin("", "0000:10:00.0", comm.rank() == 0);
    errors.expect({4000, 4000}, "0000:10:00.0", comm);
    Record own;
    own.world_nodes = 2;
    errors.record(own);
    EXPECT_THAT(own.ports, IsEmpty());
    if (comm.rank() == 0) EXPECT_THAT(own.flags, ElementsAre(flag::unproven_rails));
  });
}

}  // namespace
}  // namespace assay
