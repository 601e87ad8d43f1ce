// SPDX-License-Identifier: Apache-2.0
//
// The tiny model's forward pass, one token at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <sluice/actors/executor/tiny/tiny_attention.hpp>
#include <sluice/actors/executor/tiny/tiny_weights.hpp>

namespace sluice::inline v0::tiny {

/// A decoder-only transformer with RMSNorm before each part, rotary positions, normalised queries and keys,
/// grouped-query attention, a norm per attention head (so that a long context speaks as loudly as a short one), and
/// SwiGLU. A token is always computed alone and in the same order of operations, so its KV and its logits are
/// a function, to the bit, of the tokens up to it. The head is calibrated once: over a text drawn from the
/// prior every token's logit has mean 0 and deviation logit_gain before the prior is added, lest random weights have a
/// favourite. With a window of w tokens odd layers attend to positions [max(0, p - w + 1), p] only. Not copyable; one
/// thread at a time (scratch memory).
class transformer {
 public:
  /// `window_tokens` 0: no window.
  transformer(std::uint64_t seed, std::uint32_t max_model_len, std::uint32_t window_tokens);

  /// Computes `token` at `position` over the KV of [0, position), and writes its KV. With `logits` not empty
  /// (vocab_size of them) also what follows it. `kv` has one element per group, full attention first; its tables cover
  /// the position, which is below max_model_len.
  void forward(std::span<const sequence_kv> kv, std::uint32_t position, token_id token, std::span<float> logits);

 private:
  void calibrate();
  void write_logits(const float* state, token_id last, std::span<float> logits) const;
  void project_qkv(const layer_weights& layer, std::uint32_t position, const float* state, float* qkv) const;
  void rotate(std::uint32_t position, float* head) const;

  attended_rows rows_of(std::span<const sequence_kv> kv, std::size_t layer, std::uint32_t position) const;

  const std::unique_ptr<const weights> weights_;
  const std::uint32_t window_tokens_;
  std::vector<float> rotations_;  // [position][cos, sin][head_dim / 2]
  std::vector<float> scores_;     // scratch of attend()
  std::array<float, vocab_size> logit_scale_, logit_offset_;
};

}  // namespace sluice::inline v0::tiny
