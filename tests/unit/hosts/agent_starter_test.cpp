// Commands for remote shells, and the addresses that agents connect to.
#include "harness/hosts/agent_starter.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Environment environment(std::map<std::string, std::string> variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(RemoteShellWords, ComeFromTheFirstVariableThatNamesAProgram) {
  EXPECT_THAT(remote_shell_words(environment({{"ASSAY_RSH", "/bin/sh -x"}, {"OMPI_MCA_plm_rsh_agent", "/bin/cat"}})),
              ElementsAre("/bin/sh", "-x"));
  // Open MPI tries one after the other.
  EXPECT_THAT(remote_shell_words(environment({{"OMPI_MCA_plm_rsh_agent", "/no/such : /bin/cat -u"}})),
              ElementsAre("/bin/cat", "-u"));
  EXPECT_THAT(remote_shell_words(environment({{"PRTE_MCA_plm_ssh_agent", "/bin/cat"}})), ElementsAre("/bin/cat"));
}

TEST(RemoteShellWords, AMissingProgramIsNamed) {
  EXPECT_THAT(
      [] {
        remote_shell_words(environment({{"ASSAY_RSH", "/no/such -x"}}));
      },
      ThrowsMessage<UsageError>(HasSubstr("ASSAY_RSH=/no/such -x")));
}

TEST(AgentCommand, IsOneLineThatAnyShellReads) {
  EXPECT_EQ(agent_command("/opt/my assay/assay", {{"ASSAY_HOST", "n1"}, {"ASSAY_LABEL", "it's; $HOME"}}),
            "exec env ASSAY_HOST='n1' ASSAY_LABEL='it'\\''s; $HOME' '/opt/my assay/assay' agent");
}

TEST(AddressesTowards, AreLoopbackOnlyIfAllHostsAreThisOne) {
  EXPECT_EQ(addresses_towards({{"here", std::nullopt, "", true}}), "127.0.0.1");
  // A name that resolves to loopback here resolves to something else on another host.
  const std::string all = addresses_towards({{"here", std::nullopt, "", true}, {"localhost", std::nullopt, "", false}});
  EXPECT_FALSE(all.empty());
  EXPECT_TRUE(all == "127.0.0.1" || all.find("127.") == std::string::npos) << all;
}

}  // namespace
}  // namespace assay
