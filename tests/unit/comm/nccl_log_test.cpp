// Parsing NCCL's log: the formats of its versions, split anywhere.
#include "harness/comm/nccl_log.h"

#include "harness/core/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

NcclLog log_of(const std::vector<std::string>& lines) {
  NcclLog log;
  for (const std::string& line : lines) log.add("node7:4711:4733 [0] NCCL INFO " + line + "\n");
  return log;
}

// Whole logs of two ranks as tests/gpu/check brings them home (tests/gpu/dumps), or those in $ASSAY_NCCL_LOGS.
TEST(NcclLog, WholeLogsOfRealRanks) {
  std::vector<std::filesystem::path> files;
  const char* folder = std::getenv("ASSAY_NCCL_LOGS");
  const std::filesystem::path dumps = folder ? folder : ASSAY_SOURCE "/tests/gpu/dumps";
  std::error_code absent;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dumps, absent))
    if (entry.path().filename().string().starts_with("nccl.")) files.push_back(entry.path());
  if (files.empty()) GTEST_SKIP() << "no log of NCCL in " << dumps;
  std::map<std::filesystem::path, std::string> choices;  // by folder: NCCL logs them in rank 0 only
  for (const auto& file : files) {
    NcclLog log;
    log.add(read_whole(file, 64 << 20));
    EXPECT_FALSE(log.links().empty()) << file;
    EXPECT_NE(log.transports(), "") << file;
    choices[file.parent_path()] += log.choice();
  }
  for (const auto& [place, choice] : choices) EXPECT_THAT(choice, HasSubstr("/")) << place;
}

TEST(NcclLog, LinksOfEveryTransport) {
  const NcclLog log = log_of({
      "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
      "Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
      "Channel 02 : 3[3] -> 0[0] via SHM/direct/direct",
      "Channel 00/0 : 7[3] -> 8[0] [receive] via NET/IB/0/GDRDMA",
      "Channel 01/0 : 0[0] -> 9[1] [send] via NET/IB/3(1)/GDRDMA/Shared",
      "Channel 00/0 : 1[0] -> 0[0] [send] via NET/Socket/0 comm 0x55d0a0 nRanks 02",
      "Channel 00 : 2[b1000] -> 3[d1000] via P2P/IPC",
  });
  EXPECT_THAT(log.links(), ElementsAre(NcclLink{0, 1, "P2P/CUMEM/read"}, NcclLink{0, 9, "NET/IB/GDRDMA"},
                                       NcclLink{1, 0, "NET/Socket"}, NcclLink{2, 3, "P2P/IPC"},
                                       NcclLink{3, 0, "SHM/direct/direct"}, NcclLink{7, 8, "NET/IB/GDRDMA"}));
  EXPECT_EQ(log.transports(), "NET/IB/GDRDMA, NET/Socket, P2P/CUMEM/read, P2P/IPC, SHM/direct/direct");
}

TEST(NcclLog, OtherChannelsAndLinesAreIgnored) {
  NcclLog log =
      log_of({"Channel 00/08 :    0   1   2   3", "Channel 03/0 : 0[0] -> ", "Channel",
              "Channel 00 : x[0] -> 1[1] via P2P", "Channel 00/0 : 0[0] -> 1[1] via ", "Trees [0] 1/-1/-1->0->-1",
              "Connected all rings, use ring PXN 0 GDR 1", "NVLS multicast support is not available on dev 0"});
  log.add("PyTorch says via P2P/CUMEM Channel 00 : 0[0] -> 1[1]\n");
  log.add(std::string("\0\xff\n", 3));
  EXPECT_THAT(log.links(), IsEmpty());
  EXPECT_EQ(log.transports(), "");
}

// A group that was set up may never be used.
TEST(NcclLog, AMulticastGroupIsNoTransport) {
  const NcclLog log = log_of({"NVLS comm 0x7f1c headRank 0 nHeads 8 nvlsRanks 8 buffSize 1048576 nvlsPerRankSize 0",
                              "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
                              "AllReduce: 4 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}"});
  EXPECT_EQ(log.transports(), "P2P/CUMEM");
  EXPECT_EQ(log.choice(), "TREE/LL");
}

TEST(NcclLog, TheAlgorithmOfTheLastCall) {
  EXPECT_EQ(log_of({"AllReduce: 4194304 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}"}).choice(),
            "NVLS/SIMPLE");
  EXPECT_EQ(log_of({"AllReduce: 4 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0} comm 0x55a7"}).choice(),
            "TREE/LL");
  EXPECT_EQ(log_of({"8388608 Bytes -> Algo 1 proto 2 time 123.456001"}).choice(), "RING/SIMPLE");
  EXPECT_EQ(log_of({"AllGather [Symmetric]: 1024 Bytes -> Kernel AllGather_LLMC nchannels 16 nthreads 512"}).choice(),
            "symmetric/AllGather_LLMC");
  NcclLog log = log_of({"Broadcast: 8 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..1}"});
  log.forget_choice();
  EXPECT_EQ(log.choice(), "");
}

TEST(NcclLog, TheLastWarning) {
  NcclLog log;
  log.add("node7:4711:4711 [0] bootstrap.cc:121 NCCL WARN Bootstrap : no socket interface found\r\n");
  EXPECT_EQ(log.warning(), "Bootstrap : no socket interface found");
}

TEST(NcclLog, TextMayBeSplitAnywhere) {
  const std::string text =
      "a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\na:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] "
      "via "
      "SHM/direct/direct\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    NcclLog log;
    log.add(text.substr(0, cut));
    log.add(text.substr(cut));
    EXPECT_THAT(log.links(), SizeIs(2)) << cut;
  }
  NcclLog endless;
  for (int i = 0; i < 100; ++i) endless.add(std::string(10000, 'x'));
  endless.add("\n" + text);
  EXPECT_THAT(endless.links(), SizeIs(2));
}

TEST(SocketRemarks, OnlyWhereASocketIsUnexpected) {
  const std::vector<std::uint64_t> hosts{7, 7, 8};
  const std::set<NcclLink> inside{{0, 1, "NET/Socket"}, {1, 0, "NET/Socket"}};
  const std::set<NcclLink> between{{1, 2, "NET/Socket"}, {0, 1, "P2P/CUMEM"}};
  ASSERT_THAT(socket_remarks(inside, hosts, false), SizeIs(1));
  EXPECT_THAT(socket_remarks(inside, hosts, false)[0], HasSubstr("between GPUs of one host (rank 0 to 1)"));
  EXPECT_THAT(socket_remarks(inside, hosts, false)[0], HasSubstr("NCCL_P2P_DISABLE"));
  EXPECT_THAT(socket_remarks(between, hosts, false), IsEmpty());
  ASSERT_THAT(socket_remarks(between, hosts, true), SizeIs(1));
  EXPECT_THAT(socket_remarks(between, hosts, true)[0], HasSubstr("InfiniBand (rank 1 to 2)"));
  EXPECT_THAT(socket_remarks({{0, 9, "NET/Socket"}, {0, 2, "NET/IB"}}, hosts, true), IsEmpty());
}

class OpenNcclLog : public testing::Test {
 protected:
  OpenNcclLog() {
    for (const char* name : names_) unsetenv(name);
  }
  ~OpenNcclLog() override {
    for (const char* name : names_) unsetenv(name);
  }
  static constexpr const char* names_[] = {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"};
};

TEST_F(OpenNcclLog, CanBeWrittenByItsPath) {
  const NcclLogFile log = open_nccl_log();
  ASSERT_GE(log.fd, 0) << log.why_not;
  EXPECT_EQ(log.why_not, "");
  EXPECT_EQ(::access(log.path.c_str(), W_OK), 0);
  ::close(log.fd);
}

TEST_F(OpenNcclLog, IsTheUsersIfTheyHaveDecidedAnythingAboutIt) {
  for (const char* name : names_) {
    setenv(name, "INIT", 1);
    const NcclLogFile log = open_nccl_log();
    EXPECT_EQ(log.fd, -1);
    EXPECT_EQ(log.why_not, std::string(name) + " is set, so NCCL's log is the user's");
    unsetenv(name);
  }
}

TEST_F(OpenNcclLog, IsNotOpenedWhereNcclCouldNotWriteToIt) {
  const NcclLogFile log = open_nccl_log("/no/such/folder");
  EXPECT_EQ(log.fd, -1);
  EXPECT_THAT(log.why_not, HasSubstr("/no/such/folder/"));
  EXPECT_THAT(log.why_not, HasSubstr("No such file"));
}

}  // namespace
}  // namespace assay
