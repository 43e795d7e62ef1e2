#include "harness/core/sha256.h"

#include "harness/core/error.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace assay {

void Sha256::Free::operator()(evp_md_ctx_st* state) const { EVP_MD_CTX_free(state); }

Sha256::Sha256() : state_(EVP_MD_CTX_new()) {
  ASSAY_CHECK(EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr) == 1, "OpenSSL has no SHA-256");
}

void Sha256::add(std::span<const std::byte> bytes) {
  ASSAY_CHECK(EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  ASSAY_CHECK(EVP_DigestFinal_ex(state_.get(), digest.data(), nullptr) == 1);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace assay
