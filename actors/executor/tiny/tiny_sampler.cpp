// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::inline v0::tiny {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

double uniform_draw(std::uint64_t seed, std::uint32_t output_position) {
  const auto bits = mix(mix(seed) + (std::uint64_t{output_position} + 1) * 0x9e3779b97f4a7c15);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

token_id sample_token(std::span<const float> logits, const sampling_params& sampling, std::uint32_t output_position) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  const auto greedy = static_cast<token_id>(largest - logits.begin());
  if (!(sampling.temperature > 0)) return greedy;

  std::vector<double> cumulated(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    total += std::exp((double{logits[i]} - double{*largest}) / sampling.temperature);
    cumulated[i] = total;
  }
  const double limit = uniform_draw(sampling.seed, output_position) * total;
  const auto found = std::upper_bound(cumulated.begin(), cumulated.end(), limit);
  return found == cumulated.end() ? greedy : static_cast<token_id>(found - cumulated.begin());
}

}  // namespace sluice::inline v0::tiny
