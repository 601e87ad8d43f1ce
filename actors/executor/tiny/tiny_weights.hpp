// SPDX-License-Identifier: Apache-2.0
//
// The tiny model's weights, drawn from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <sluice/actors/executor/tiny/tiny_shape.hpp>

namespace sluice::inline v0::tiny {

/// Matrices are [input][output].
struct layer_weights {
  std::array<float, model_dim * qkv_dim> qkv;  ///< queries, then keys, then values
  std::array<float, model_dim * model_dim> attention_out;
  std::array<float, model_dim * 2 * ffn_dim> gate_up;  ///< gate, then up
  std::array<float, ffn_dim * model_dim> down;
};

struct weights {
  std::array<float, vocab_size * model_dim> embedding;  ///< [token][model_dim]
  std::array<layer_weights, num_layers> layers;
  std::array<float, model_dim * padded_vocab_size> head;
};

/// Weights of `seed`: the same on every machine. Each is deviation * sqrt(3) * u with u uniform in [-1, 1), where
/// u = 2 * (raw >> 40) / 2^24 - 1 for the next raw output of std::mt19937_64(seed); members are filled in the
/// order of their declaration. The deviation of a matrix is 1 / sqrt(inputs).
std::unique_ptr<const weights> make_weights(std::uint64_t seed);

/// Adds the embedding of an absolute position: random too (splitmix64's finaliser of position * model_dim + index),
/// and the same for every seed. It keeps random weights from falling into loops, as rotary positions alone do
/// not tell one turn of a loop from the next.
void add_position(std::uint32_t position, float* state);

}  // namespace sluice::inline v0::tiny
