// SPDX-License-Identifier: Apache-2.0
//
// Content keys: a chain of SHA-256 over the tokens of full blocks. The chain's root covers format version,
// model, dtype, layout, block size, group and salt, and nothing of the process, so that keys are the same
// after a restart and on another machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// What makes KV of two engines interchangeable.
struct content_identity {
  std::string model;
  std::string dtype;
  std::uint64_t bytes_per_block = 0;
  std::uint32_t block_size = 0;
  group_id group;
};

/// Used by one thread.
class block_hasher {
 public:
  explicit block_hasher(content_identity identity);
  block_hasher(block_hasher&&) noexcept;
  ~block_hasher();

  /// Appends the keys of the full blocks of `tokens` that `keys` does not have yet. `keys` must be a
  /// prefix of the chain of the same tokens and salt.
  void extend(std::span<const token_id> tokens, std::string_view salt, std::vector<content_key>& keys) const;

 private:
  struct digest_context;

  content_key root(std::string_view salt) const;

  content_identity identity_;
  std::unique_ptr<digest_context> context_;
};

}  // namespace sluice::inline v0
