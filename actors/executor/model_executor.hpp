// SPDX-License-Identifier: Apache-2.0
//
// The model seam: what an embedder implements to have a model served. Free of CAF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sluice/gpu/device.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Where one part of a group's blocks lies: block b occupies bytes
/// [base + b * stride_bytes, base + b * stride_bytes + bytes_per_block).
struct kv_segment {
  std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t bytes_per_block = 0;
};

/// Layers that share one block table.
struct kv_group_spec {
  enum class kind : std::uint8_t { full_attention, sliding_window };
  kind attention = kind::full_attention;
  std::uint32_t window_tokens = 0;  ///< sliding windows only
  std::uint32_t block_size = 16;    ///< tokens per block of this group
};

/// What a model needs from the paged KV cache. All blocks of all groups have `bytes_per_block` bytes.
struct kv_spec {
  std::vector<kv_group_spec> groups;
  std::size_t bytes_per_block = 0;
};

struct model_info {
  std::string name;
  std::string dtype;                 ///< part of every content key
  std::uint32_t max_model_len = 0;   ///< tokens, prompt and output together
  std::uint32_t vocab_size = 0;
  std::vector<token_id> end_tokens;  ///< sampling one of these ends a request unless it ignores them
};

/// The device memory of the block pool as the model sees it: `num_blocks` blocks (the null block included),
/// one list of segments per group.
struct kv_memory {
  std::uint32_t num_blocks = 0;
  std::vector<std::vector<kv_segment>> segments;
};

/// Computes steps. Called by the executor actor only, one call at a time.
class model_executor {
 public:
  virtual ~model_executor() = default;

  virtual model_info info() const = 0;

  /// The cache layout for blocks of `block_size` tokens.
  virtual kv_spec kv(std::uint32_t block_size) const = 0;

  /// Called once before the first step. The memory stays valid until the executor is destroyed.
  virtual void bind(const kv_memory& memory) = 0;

  /// Enqueues the computation of `batch` on `compute`, does not synchronise: for each entry compute the KV of
  /// its tokens into its blocks and, where `samples` is set, append the next token to `sampled` in batch
  /// order. A pending token is `previous[entry.previous_sample]`: `previous` is what the step enqueued before samples,
  /// complete when this work runs; only if that step failed may it lack an entry, whose result is then not used
  /// (a token must be appended all the same). All three stay valid until the work has ended, after which `sampled` is
  /// read. Keys and values before a sliding window are not read: their table entries may be the null block.
  /// Errors: whatever the device reports; then nothing of the batch may be pending on the stream.
  virtual gpu::status enqueue(const step_batch& batch, const std::vector<sampled_token>& previous,
                              gpu::stream& compute, std::vector<sampled_token>& sampled) = 0;

  /// Gives the weights' memory back and takes it again, with the contents they had. Nothing is enqueued between the
  /// two. A model that cannot does nothing.
  virtual gpu::status release_weights() { return {}; }
  virtual gpu::status restore_weights() { return {}; }
};

}  // namespace sluice::inline v0
