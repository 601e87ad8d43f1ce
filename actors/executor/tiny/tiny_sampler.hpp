// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0::tiny {

/// A number in [0, 1) from (seed, output position) only:
/// (mix(mix(seed) + (output_position + 1) * 0x9e3779b97f4a7c15) >> 11) / 2^53, mix being splitmix64's finaliser
/// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
double uniform_draw(std::uint64_t seed, std::uint32_t output_position);

/// The next token: at temperature 0 the largest logit, the lowest id among equals; else the first token at which the
/// cumulated softmax(logits / temperature) exceeds the draw. `logits` is not empty.
token_id sample_token(std::span<const float> logits, const sampling_params& sampling, std::uint32_t output_position);

}  // namespace sluice::inline v0::tiny
