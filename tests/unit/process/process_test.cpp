// How processes ended, and what they printed last.
#include "harness/process/process.h"

#include "harness/process/ask.h"
#include "harness/process/privileges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace assay {
namespace {

TEST(DescribeStatus, SignalsAndCodes) {
  EXPECT_EQ(describe_status(SIGSEGV, false), "killed by SIGSEGV (signal 11)");
  EXPECT_EQ(describe_status(3 << 8, false), "ended with code 3");
  EXPECT_EQ(describe_status(137 << 8, true), "killed by SIGKILL (signal 9)");
  EXPECT_EQ(describe_status(0, true), "");
  // Open MPI's mpirun may report how it ended the other rank.
  EXPECT_EQ(describe_status(14 << 8, true), "");
  EXPECT_EQ(describe_status(14 << 8, false), "ended with code 14");
}

TEST(TailOf, OmitsTheLaunchersRemarks) {
  const std::string frame(60, '-');
  EXPECT_EQ(
      tail_of("one\n" + frame + "\nPrimary job terminated\n" + frame + "\nmpirun: Forwarding signal 18\n\ntwo\n", 100),
      "one\ntwo");
}

TEST(TailOf, OmitsReportsOfLostPeers) {
  using namespace std::string_view_literals;
  const std::string missing(
      "last words\n\0[one:00000] *** An error occurred in Socket closed\n[one:00000] *** on a NULL communicator\n"
      "[one:00000] *** Unknown error\n\0\n"sv);
  EXPECT_EQ(tail_of(missing, 400), "last words");
  // Other errors of MPI may be the cause.
  const std::string own = "[one:00001] *** An error occurred in MPI_Recv\n[one:00001] *** MPI_ERR_TRUNCATE";
  EXPECT_EQ(tail_of(own, 400), own);
}

TEST(TailOf, KeepsWholeLines) {
  EXPECT_EQ(tail_of("first line\nsecond\nthird\n", 14), "second\nthird");
  EXPECT_EQ(tail_of("", 10), "");
}

TEST(KeepTail, IsBounded) {
  std::string kept;
  for (int i = 0; i < 100; ++i) keep_tail(kept, std::string(10000, static_cast<char>('a' + i % 26)));
  EXPECT_LE(kept.size(), 140000u);
  EXPECT_EQ(kept.back(), static_cast<char>('a' + 99 % 26));
}

TEST(TrustedVariables, OnlyNamesThatLoadNothingAreKept) {
  const std::pair<const char*, const char*> set[] = {{"PATH", "/tmp/planted"},
                                                     {"LD_AUDIT", "/tmp/x.so"},
                                                     {"GLIBC_TUNABLES", "x"},
                                                     {"PYTHONPATH", "/tmp"},
                                                     {"OPENSSL_CONF", "/tmp/conf"},
                                                     {"OMP_NUM_THREADS", "1"},
                                                     {"CUDA_INJECTION64_PATH", "x"},
                                                     {"NCCL_NET_PLUGIN", "x"},
                                                     {"ASSAY_HOST", "n1"},
                                                     {"SLURM_JOB_GPUS", "3"},
                                                     {"TMPDIR", "/dev"}};
  for (const auto& [name, value] : set) ::setenv(name, value, 1);
  std::vector<std::string> left_out;
  const Variables kept = trusted_variables(left_out);
  for (const auto& [name, value] : set) ::unsetenv(name);
  ::setenv("PATH", "/usr/bin:/bin", 1);
  EXPECT_EQ(kept.at("PATH"), "/usr/sbin:/usr/bin:/sbin:/bin");
  EXPECT_EQ(kept.at("ASSAY_HOST"), "n1");
  EXPECT_EQ(kept.at("SLURM_JOB_GPUS"), "3");
  EXPECT_EQ(kept.at("TMPDIR"), "/dev");
  for (const char* name : {"LD_AUDIT", "GLIBC_TUNABLES", "PYTHONPATH", "OPENSSL_CONF", "OMP_NUM_THREADS",
                           "CUDA_INJECTION64_PATH", "NCCL_NET_PLUGIN"})
    EXPECT_FALSE(kept.contains(name)) << name;
  EXPECT_EQ(left_out, (std::vector<std::string>{"GLIBC_TUNABLES", "LD_AUDIT"}));
}

TEST(BecomeNobody, IsForGoodAndWithoutGroups) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const ChildAnswer answer = ask_child(
      [] {
        become_nobody();
        const bool back = ::setuid(0) == 0;
        std::ifstream status("/proc/self/status"), environment("/proc/self/environ");
        std::string line, text = back ? "root again\n" : "";
        while (std::getline(status, line))
          if (line.starts_with("Uid:") || line.starts_with("Gid:") || line.starts_with("Groups:") ||
              line.starts_with("CapEff:"))
            text += line + "\n";
        int signal = 0;
        ::prctl(PR_GET_PDEATHSIG, &signal);
        return fmt::format("{}{} {}", text, signal, environment.good());
      },
      10);
  EXPECT_EQ(answer.text.value_or(answer.problem),
            "Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t "
            "\nCapEff:\t0000000000000000\n9 true");
}

}  // namespace
}  // namespace assay
