// Secrets in JSON.
#include "harness/json/masked.h"
#include "harness/core/secrets.h"
#include "harness/json/json.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Masked, NamesTextsAndWordsOfCommands) {
  const Json json = {
      {"argv", {"assay", "run", "--api-key", "hunter2", "-H", "Authorization: Bearer hunter2", "--x", "1"}},
      {"labels", {{"key", "Zq81kfLw02"}, {"token", "Zq81kfLw02"}, {"owner", "me"}}},
      {"key", "Zq81kfLw02"},
      {"inner", {{{"db_password", "hunter2"}}}},
      {"words", {"Authorization:", "Bearer", "hunter2"}},
      {"numbers", {1, 2.5}}};
  EXPECT_EQ(
      dump_line(masked(json)),
      R"({"argv":["assay","run","--api-key","[masked]","-H","Authorization: Bearer [masked]","--x","1"],)"
      R"("labels":{"key":"[masked]","token":"[masked]","owner":"me"},"key":"Zq81kfLw02",)"
      R"("inner":[{"db_password":"[masked]"}],"words":["Authorization:","Bearer","[masked]"],"numbers":[1,2.5]})");
  EXPECT_EQ(masked(masked(json)), masked(json));
}

TEST(Masked, LinesWithoutSecretsStayByteForByte) {
  const std::string plain = R"({"key" : "a/b=1", "x":1.50})";
  EXPECT_EQ(masked_line(plain), plain);
  EXPECT_EQ(masked_line(R"({"log":"password=hunter2\n", "x":1})"), R"({"log":"password=[masked]\n","x":1})");
  EXPECT_EQ(masked_line(R"({"log":"password=hunter2)"), R"({"log":"password=[masked])");
}

}  // namespace
}  // namespace assay
