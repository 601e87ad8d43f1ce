// SPDX-License-Identifier: Apache-2.0
//
// The tiny model's dimensions. Weights, cache layout and kernels are compiled for them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::tiny {

inline constexpr std::size_t model_dim = 64;
inline constexpr std::size_t num_layers = 4;
inline constexpr std::size_t num_heads = 4;     ///< query heads
inline constexpr std::size_t num_kv_heads = 2;  ///< each serves two consecutive query heads
inline constexpr std::size_t heads_per_kv_head = num_heads / num_kv_heads;
inline constexpr std::size_t head_dim = 16;
inline constexpr std::size_t kv_dim = num_kv_heads * head_dim;
inline constexpr std::size_t qkv_dim = model_dim + 2 * kv_dim;
inline constexpr std::size_t ffn_dim = 128;
inline constexpr std::size_t vocab_size = 257;         ///< the byte tokenizer's
inline constexpr std::size_t padded_vocab_size = 288;  ///< a whole number of kernel tiles
inline constexpr float rope_base = 100.0f;

/// Score gains and query biases of the query heads that share a KV head. Queries and keys have unit rms, so with gain 1
/// a score lies in [-4, 4]: the first head never ignores a position, however long the text. The second one is sharp,
/// and its bias meets that of the keys, whose rotary phases agree best at a small distance: it follows the recent past.
inline constexpr float score_gains[heads_per_kv_head] = {1.0f, 4.0f};
inline constexpr float query_biases[heads_per_kv_head] = {0.0f, 2.0f};
inline constexpr float key_bias = 0.7f;
/// Size of the position embedding beside the unit-size token embedding.
inline constexpr float position_gain = 0.6f;

static_assert(num_heads * head_dim == model_dim);

/// With a window, odd layers see the window only. Even and odd layers are then a KV group each, of equal size.
inline constexpr std::size_t num_groups(bool has_window) { return has_window ? 2 : 1; }
static_assert(num_layers % 2 == 0);

/// K and V of all layers of one token, float32; every group has an equal part of it.
inline constexpr std::size_t kv_bytes_per_token = num_layers * 2 * kv_dim * sizeof(float);

}  // namespace sluice::inline v0::tiny
