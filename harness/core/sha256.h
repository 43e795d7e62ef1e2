// SHA-256 (FIPS 180-4) by OpenSSL, to detect damaged files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace assay {

class Sha256 {
 public:
  Sha256();
  void add(std::span<const std::byte> bytes);
  // 64 hexadecimal digits; do not use the object afterwards.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* state) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace assay
