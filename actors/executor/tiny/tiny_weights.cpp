// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_weights.hpp>

#include <cmath>
#include <random>
#include <span>

namespace sluice::inline v0::tiny {
namespace {

void fill(std::span<float> values, float deviation, std::mt19937_64& random) {
  const float limit = deviation * std::sqrt(3.0f);
  for (auto& value : values) {
    const auto bits = static_cast<float>(random() >> 40);  // 24 bits, exact
    value = limit * (bits * 0x1p-23f - 1.0f);
  }
}

void fill_matrix(std::span<float> values, std::size_t num_inputs, std::mt19937_64& random) {
  fill(values, 1.0f / std::sqrt(static_cast<float>(num_inputs)), random);
}

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::unique_ptr<const weights> make_weights(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto made = std::make_unique<weights>();
  fill(made->embedding, 1.0f, random);
  for (auto& layer : made->layers) {
    fill_matrix(layer.qkv, model_dim, random);
    fill_matrix(layer.attention_out, model_dim, random);
    fill_matrix(layer.gate_up, model_dim, random);
    fill_matrix(layer.down, ffn_dim, random);
  }
  fill_matrix(made->head, model_dim, random);
  return made;
}

void add_position(std::uint32_t position, float* state) {
  const float limit = position_gain * std::sqrt(3.0f);
  for (std::size_t i = 0; i < model_dim; ++i) {
    const auto bits = mix((std::uint64_t{position} * model_dim + i + 1) * 0x9e3779b97f4a7c15) >> 40;
    state[i] += limit * (static_cast<float>(bits) * 0x1p-23f - 1.0f);
  }
}

}  // namespace sluice::inline v0::tiny
