// Leaf switches of hosts, as Slurm writes them.
#include "harness/hosts/topology.h"

#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(Topology, LeavesOfATreeAreReadAndUpperSwitchesAreNot) {
  const char* const said =
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
      "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n03,x\n"
      "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[1-2],n03,x Switches=s[0-1]\n";
  EXPECT_THAT(parse_topology(said, "scontrol"),
              ElementsAre(Pair("n03", "s1"), Pair("n1", "s0"), Pair("n2", "s0"), Pair("x", "s1")));
  EXPECT_THAT(parse_topology("# two racks\r\n\n  switchname=a nodes=b # c\nSwitchName=top Switches=a\n", "f"),
              ElementsAre(Pair("b", "a")));
}

TEST(Topology, BlocksAndSwitchesOfEachRailAreGroupsToo) {
  EXPECT_THAT(parse_topology("BlockName=b1 BlockIndex=0 Nodes=n1 BlockSize=1\nAggregatedBlock=b[1-2] Nodes=n[1-2]\n"
                             "BlockSizes=1\n",
                             "f"),
              ElementsAre(Pair("n1", "b1")));
  EXPECT_THAT(parse_topology("SwitchName=r0 Nodes=n[1-2]\nSwitchName=r1 Nodes=n[1-2]\n", "f"),
              ElementsAre(Pair("n1", "r0+r1"), Pair("n2", "r0+r1")));
}

TEST(Topology, ALineOfAnotherFormIsNamed) {
  EXPECT_THAT(test::refusal([] { parse_topology("SwitchName=a Nodes=b\nleaf1 n1\n", "f"); }),
              HasSubstr("f:2: \"leaf1 n1\" is not as in SwitchName=leaf1 Nodes=n[1-8]"));
  EXPECT_THAT(test::refusal([] { parse_topology("SwitchName=a Nodes=b[1-\n", "f"); }), HasSubstr("f:1: Nodes=b[1-: "));
  EXPECT_THAT(test::refusal([] { read_topology("/nonexistent/topology.conf", "--topology"); }),
              HasSubstr("--topology: "));
}

}  // namespace
}  // namespace assay
