// Which ports NCCL uses, what crossed them, and which are nearest to which GPUs, on folders of the kernel's files.
#include "harness/machine/nccl_ports.h"
#include "tests/unit/machine/fake_root.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Bridge i has GPU 0000:i0:00.0 and port mlx5_i.
class Ports : public testing::Test {
 protected:
  void SetUp() override { unsetenv("NCCL_IB_HCA"); }
  void gpu(const std::string& bridge, const std::string& pci) {
    const auto place = "sys/devices/pci0000:00/" + bridge + "/" + pci;
    fake_.file(place + "/class", "0x030200").link("sys/bus/pci/devices/" + pci, fake_.path() / place);
  }
  void port(const std::string& bridge, const std::string& name, std::int64_t sent, std::int64_t received) {
    const auto place = "sys/devices/pci0000:00/" + bridge + "/" + name;
    fake_.file(place + "/class", "0x020700").link("sys/class/infiniband/" + name + "/device", fake_.path() / place);
    count(name, sent, received);
  }
  void count(const std::string& name, std::int64_t sent, std::int64_t received) {
    const auto folder = "sys/class/infiniband/" + name + "/ports/1/counters/";
    fake_.file(folder + "port_xmit_data", std::to_string(sent));
    fake_.file(folder + "port_rcv_data", std::to_string(received));
  }
  static std::vector<std::string> texts(const std::vector<PortBytes>& all) {
    std::vector<std::string> lines;
    for (const PortBytes& one : all)
      lines.push_back(fmt::format("{}:{} {} {}", one.port.device, one.port.number, one.sent, one.received));
    return lines;
  }
  std::vector<std::string> expected(const std::vector<GpuBytes>& gpus) const {
    return texts(expected_port_bytes(fake_.root(), gpus));
  }
  std::vector<std::string> nearest(const std::string& pci) const {
    std::vector<std::string> names;
    for (const PortId& port : nearest_ports(fake_.root(), pci))
      names.push_back(fmt::format("{}:{}", port.device, port.number));
    return names;
  }
  FakeRoot fake_;
};

TEST_F(Ports, CountWordsOfFourBytes) {
  port("a", "mlx5_0", 10, 20);
  port("b", "mlx5_1", 4294967295, 20);  // the end of 32 bits on old hardware
  fake_.file("sys/class/infiniband/efa_0/ports/1/hw_counters/tx_bytes", "7");
  EXPECT_THAT(texts(read_port_bytes(fake_.root())), ElementsAre("mlx5_0:1 40 80"));
  EXPECT_EQ(infiniband_ports(fake_.root()).size(), 3u);
  count("mlx5_0", 5000000000, 20);
  EXPECT_THAT(texts(read_port_bytes(fake_.root())), ElementsAre("mlx5_0:1 20000000000 80"));
  EXPECT_THAT(read_port_bytes(FakeRoot().root()), IsEmpty());
}

TEST_F(Ports, EachGpuIsExpectedToUseThePortBesideIt) {
  gpu("a", "0000:10:00.0"), gpu("b", "0000:20:00.0");
  port("a", "mlx5_0", 0, 0), port("b", "mlx5_1", 0, 0), port("c", "mlx5_2", 0, 0);
  const std::vector<GpuBytes> both = {{"0000:10:00.0", 100, 50}, {"0000:20:00.0", 70, 30}};
  EXPECT_THAT(expected(both), ElementsAre("mlx5_0:1 100 50", "mlx5_1:1 70 30"));
  EXPECT_THAT(expected({{"", 100, 50}, {"0000:99:00.0", 1, 1}}), IsEmpty()) << "no GPU, or none that is known";
}

TEST_F(Ports, TheNearestAreThoseBesideTheGpu) {
  gpu("a", "0000:10:00.0"), gpu("d", "0000:40:00.0");
  EXPECT_THAT(nearest("0000:10:00.0"), IsEmpty()) << "no port";
  port("a", "mlx5_0", 0, 0), port("a", "mlx5_1", 0, 0), port("c", "mlx5_2", 0, 0);
  EXPECT_THAT(nearest("0000:10:00.0"), ElementsAre("mlx5_0:1", "mlx5_1:1"));
  EXPECT_THAT(nearest("0000:40:00.0"), ElementsAre("mlx5_0:1", "mlx5_1:1", "mlx5_2:1")) << "none is nearer";
  EXPECT_THAT(nearest(""), IsEmpty());
  EXPECT_THAT(nearest("0000:99:00.0"), IsEmpty());
  fake_.file("etc/nccl.conf", "NCCL_IB_HCA=^mlx5_0");
  EXPECT_THAT(nearest("0000:10:00.0"), ElementsAre("mlx5_1:1"));
}

TEST_F(Ports, GpusThatShareTheirPortsLoadThemEvenly) {
  gpu("a", "0000:10:00.0"), gpu("a", "0000:11:00.0");
  port("a", "mlx5_0", 0, 0);
  const std::vector<GpuBytes> both = {{"0000:10:00.0", 100, 50}, {"0000:11:00.0", 60, 30}};
  EXPECT_THAT(expected(both), ElementsAre("mlx5_0:1 160 80"));
  port("a", "mlx5_1", 0, 0);
  EXPECT_THAT(expected(both), ElementsAre("mlx5_0:1 80 40", "mlx5_1:1 80 40"));
  port("a", "mlx5_2", 0, 0);
  EXPECT_THAT(expected(both), IsEmpty()) << "one of three may stay idle";
  fake_.file("etc/nccl.conf", "NCCL_IB_HCA==mlx5_0,mlx5_2:1");
  EXPECT_THAT(expected(both), ElementsAre("mlx5_0:1 80 40", "mlx5_2:1 80 40"));
}

}  // namespace
}  // namespace assay
