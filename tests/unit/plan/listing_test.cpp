// The families as `assay list` shows them.
#include "harness/plan/listing.h"

#include "harness/json/json.h"
#include "tests/unit/plan/fake_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Listing, HasWhatAParameterHasAndNothingElse) {
  const std::vector<Family> families = fake_families();
  const Json json = families_json(families);
  ASSERT_EQ(json.size(), families.size());
  EXPECT_EQ(json[0]["devices"], Json({"cpu", "cuda"}));
  const Json& params = json[0]["params"];
  EXPECT_EQ(params[0].dump(), R"({"name":"op","type":"choice","defaults":["read","write"],)"
                              R"("allowed":["read","write","copy"],"help":"what"})");
  EXPECT_EQ(params[1]["sweep"], Json({1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(params[1]["type"], "bytes");
  EXPECT_EQ(params[3]["maximum"], 1.0);
  EXPECT_EQ(params[6]["devices"], Json::array({"cpu"}));
  EXPECT_FALSE(params[6].contains("minimum"));
}

TEST(Listing, NamesDefaultsInBrackets) {
  const std::string text = families_text(fake_families());
  EXPECT_THAT(text, testing::StartsWith("families\n  toy          every kind of parameter\n"
                                        "    op           choice   what (read, write, copy) [read, write]\n"));
  EXPECT_THAT(text, testing::HasSubstr("    pause        seconds  a time [0]\n"));
}

}  // namespace
}  // namespace assay
