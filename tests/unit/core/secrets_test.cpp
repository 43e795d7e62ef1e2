// What is masked, and what must stay as it is.
#include "harness/core/secrets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

TEST(Secrets, AreMasked) {
  // In each text ~ stands for the secret.
  const std::string word = "hunter2", random = "Zq81kfLw02", hex = "0123456789abcdef0123456789abcdef01234567";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--api-key=~", word},
      {"--api-key ~", word},
      {"--token ~", word},
      {"--token=~", word},
      {"--key ~ --other 3", word},
      {"PASSWORD=~", "$ecret"},
      {"API_KEY=~", word},
      {"WANDB_API_KEY=~ assay run", word},
      {"HF_TOKEN=~", word},
      {"PGPASSWORD=~", word},
      {"client_secret: ~", word},
      {"apiKey: '~'", word},
      {"password = \"~ and more\"", word},
      {"db.password=~", word},
      {"{\"password\": \"~\"}", word},
      {"{\\\"password\\\": \\\"~\\\"}", word},
      {"{\"token\": \"~\"}", random},
      {"token=~", random},
      {"key=~", random},
      {"key: ~", random},
      {"loss 0.5 token:~", random},
      {"Authorization: Bearer ~", word},
      {"curl -H 'Authorization: Basic ~' host", "dXNlcjpwdw=="},
      {"Authorization: token ~", word},
      {"sent Bearer ~ to the server", random},
      {"x-api-key: ~", word},
      {"https://~@host/path?x=1", "user:pw"},
      {"https://~@host", random},
      {"git clone https://~@github.com/a/b", "oauth2:p@ss"},
      {"GET https://host/p?n=1&token=~&m=2", random},
      {"uses ~ for this", "AKIAIOSFODNN7EXAMPLE"},
      {"~", "ghp_0123456789abcdefghijABCDEFGHIJ012345"},
      {"(~)", "gho_0123456789abcdefghijABCDEFGHIJ012345"},
      {"\\n~\\n", "github_pat_11ABCDEFG0123456789_abcdefghijk"},
      {"\x1b[31m~", "hf_abcdefghijklmnopqrstuvwxyz01234567"},
      {"~", "xoxb-123456789012-abcdefABCDEF"},
      {"key is ~", "sk-proj-abcdefghijkl0123456789"},
      {"~", "sk-ant-api03-abcdefgh_0123456789"},
      {"~", "AIzaSyA0123456789abcdefghijklmnopqrstuv"},
      {"cookie ~", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_DEF123"},
      {"wandb: your API key ~", hex},
      {"wandb login ~", hex},
      {"-----BEGIN RSA PRIVATE KEY-----~-----END RSA PRIVATE KEY-----\nrest", "\nMIIEpAIBAAKCAQEA7\nabc+/=\n"},
      {"-----BEGIN OPENSSH PRIVATE KEY-----~", "\nb3BlbnNzaC1rZXktdjEAAA\n"},
      {"SSH_PRIVATE_KEY=-----BEGIN PRIVATE KEY-----~-----END PRIVATE KEY-----", "\nMIIEpAIBAAKCAQEA7\n"},
      {"tail: ~-----END PRIVATE KEY-----", "KCAQEA7abcdefghijkl\nabcdefgh==\n"},
  };
  for (const auto& [form, secret] : cases) {
    const std::size_t at = form.find('~');
    const auto with = [&, form = form](std::string_view value) {
      return form.substr(0, at).append(value) + form.substr(at + 1);
    };
    const std::string once = mask_secrets(with(secret));
    EXPECT_EQ(once.find(secret), once.npos) << once;
    EXPECT_TRUE(holds_secret(with(secret))) << form;
    EXPECT_EQ(mask_secrets(once), once);
    EXPECT_FALSE(holds_secret(once)) << once;
    EXPECT_EQ(count_masked(once), 1u) << once;
  }
  EXPECT_EQ(mask_secrets("a --token hunter2 b"), "a --token [masked] b");
  EXPECT_EQ(mask_secrets("https://u:p@h/x"), "https://[masked]@h/x");
}

TEST(Secrets, OthersStay) {
  for (const char* text : {
           "tokens_per_second 1200 higher",
           "token=128 latency=3ms",
           "latency/token=abc123def/batch=8",
           "--tokens 100M",
           "--token 100M",
           "time_per_token=0.25s",
           "eos_token=<|im_end|>",
           "sort_key=throughput key=bfloat16 key=int32",
           "monkey=hunter2 keyboard=us104 turkey: abc123def",
           "{\"key\": \"gemm1024/m=4096\", \"keys\": [\"a1b2c3d4\"]}",
           "key: gemm/m=4096/n=4096/dtype=bf16",
           "pkey=0xffff",
           "commit 0123456789abcdef0123456789abcdef01234567",
           "the password is wrong, give another token",
           "https://host:8080/a@b",
           "ssh://git@github.com/x",
           "mail user@host",
           "--api-key \"$API_KEY\" --token ${TOKEN} --secret $(cat x)",
           "password_file=/etc/x api_key_id=3",
           "hf_transfer hf_hub_download sk-learn ghp_ AKIA",
           "token::kind(a1b2c3d4)",
           "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7\n-----END CERTIFICATE-----",
           "password: false",
       }) {
    EXPECT_EQ(mask_secrets(text), text);
    EXPECT_FALSE(holds_secret(text)) << text;
  }
}

TEST(Secrets, NamesOfMembers) {
  EXPECT_TRUE(is_secret("password", "hunter2"));
  EXPECT_TRUE(is_secret("HF_TOKEN", "abc"));
  EXPECT_TRUE(is_secret("key", "Zq81kfLw02"));
  EXPECT_FALSE(is_secret("key", "fast"));
  EXPECT_FALSE(is_secret("password", "[masked]"));
  EXPECT_FALSE(is_secret("tokens", "Zq81kfLw02"));
}

// Text that begins something again and again must not be read to its end each time.
TEST(Secrets, AreFoundInLinearTime) {
  for (const char* part : {"token=", "password=$", "eyJ.", "-----BEGIN ", "-----END PRIVATE KEY-----", "://", "key: \"",
                           "bearer ", "--token ", "\\", "sk-", "A-----END PRIVATE KEY-----", "authorization: "}) {
    std::string text;
    while (text.size() < (1u << 19)) text += part;
    EXPECT_LE(mask_secrets(text).size(), 2 * text.size());
  }
}

}  // namespace
}  // namespace assay
