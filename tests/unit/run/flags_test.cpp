// What flags of a run say, and what is refused.
#include "harness/run/flags.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(RunFlags, WorldSizesCountOnce) {
  EXPECT_EQ(parse_ranks("2,1,2"), (std::vector<int>{2, 1}));
  for (const char* bad : {"0", "65537", "", "1,,2", "two"})
    EXPECT_THAT([&] { parse_ranks(bad); }, ThrowsMessage<UsageError>(HasSubstr(std::string("--ranks ") + bad))) << bad;
}

TEST(RunFlags, ALabelHasANameAndAValue) {
  EXPECT_EQ(parse_labels({"a=1", "b=x=y", "a="}), (std::map<std::string, std::string>{{"a", ""}, {"b", "x=y"}}));
  for (const char* bad : {"a", "=1", "a=\xff"}) EXPECT_THROW(parse_labels({bad}), UsageError) << bad;
}

TEST(RunFlags, FaultsAreNamed) {
  EXPECT_EQ(parse_faults({"crash,hang", "hang"}), (std::set<Fault>{Fault::crash, Fault::hang}));
  EXPECT_THAT([] { parse_faults({"crsh"}); }, ThrowsMessage<UsageError>(HasSubstr("did you mean \"crash\"?")));
  // The last one is known, too.
  EXPECT_EQ(parse_faults({"oversubscribe"}).size(), 1u);
}

}  // namespace
}  // namespace assay
