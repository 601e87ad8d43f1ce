// SPDX-License-Identifier: Apache-2.0
//
// What the tiny model believes about text before it looks at any: a bigram prior that makes its babble readable.
#pragma once

#include <span>

#include <sluice/actors/executor/tiny/tiny_shape.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0::tiny {

/// Standard deviation of the part of a logit that depends on the context. Against it stand the logarithms of
/// letter frequencies in `prior_after`.
inline constexpr float logit_gain = 2.0f;

/// vocab_size values that are added to the logits after `last`: log frequencies of English letters, vowels and
/// consonants preferring each other, a space after punctuation, an end token after a full stop only, all that is not
/// printable ASCII practically excluded. Static lifetime, any thread.
std::span<const float> prior_after(token_id last);

}  // namespace sluice::inline v0::tiny
