// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/block_hasher.hpp>

#include <cassert>
#include <stdexcept>

#include <openssl/evp.h>

namespace sluice::inline v0 {

namespace {

constexpr std::uint64_t format_version = 1;

void append_number(std::string& out, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

/// Length first, so that no two lists of texts give the same bytes.
void append_text(std::string& out, std::string_view text) {
  append_number(out, text.size());
  out.append(text);
}

}  // namespace

/// A fetched digest and a context that is used again and again: three times as fast as one-shot calls.
struct block_hasher::digest_context {
  EVP_MD* digest = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::vector<std::uint8_t> bytes;

  digest_context() {
    if (digest == nullptr || context == nullptr) throw std::runtime_error("OpenSSL offers no SHA-256");
  }
  ~digest_context() {
    EVP_MD_CTX_free(context);
    EVP_MD_free(digest);
  }

  content_key hash(const void* data, std::size_t num_bytes) {
    content_key key;
    unsigned size = 0;
    const bool is_hashed = EVP_DigestInit_ex2(context, digest, nullptr) == 1 &&
                           EVP_DigestUpdate(context, data, num_bytes) == 1 &&
                           EVP_DigestFinal_ex(context, key.data(), &size) == 1;
    if (!is_hashed || size != key.size()) throw std::runtime_error("SHA-256 failed");
    return key;
  }
};

block_hasher::block_hasher(content_identity identity)
    : identity_(std::move(identity)), context_(std::make_unique<digest_context>()) {}
block_hasher::block_hasher(block_hasher&&) noexcept = default;
block_hasher::~block_hasher() = default;

content_key block_hasher::root(std::string_view salt) const {
  std::string bytes;
  append_text(bytes, "sluice-kv");
  append_number(bytes, format_version);
  append_text(bytes, identity_.model);
  append_text(bytes, identity_.dtype);
  append_number(bytes, identity_.bytes_per_block);
  append_number(bytes, identity_.block_size);
  append_number(bytes, identity_.group.value);
  append_text(bytes, salt);
  return context_->hash(bytes.data(), bytes.size());
}

void block_hasher::extend(std::span<const token_id> tokens, std::string_view salt,
                          std::vector<content_key>& keys) const {
  const std::size_t block_size = identity_.block_size;
  const std::size_t num_full = tokens.size() / block_size;
  if (keys.size() >= num_full) return;
  content_key parent = keys.empty() ? root(salt) : keys.back();
  auto& bytes = context_->bytes;
  bytes.resize(parent.size() + block_size * sizeof(token_id));
  while (keys.size() < num_full) {
    std::copy(parent.begin(), parent.end(), bytes.begin());
    auto* out = bytes.data() + parent.size();
    for (auto token : tokens.subspan(keys.size() * block_size, block_size)) {
      const auto word = static_cast<std::uint32_t>(token);
      for (int shift = 0; shift < 32; shift += 8) *out++ = static_cast<std::uint8_t>(word >> shift);
    }
    parent = context_->hash(bytes.data(), bytes.size());
    keys.push_back(parent);
  }
}

}  // namespace sluice::inline v0
