// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "trace.hpp"

namespace sluice::simulation {

/// Draws a trace from a seed: first the setup, then one event after the other, each in a mood (quiet, crowded, slow
/// copies, many control commands, ...) that changes now and then, so that rare things also come in numbers.
class generator {
 public:
  explicit generator(std::uint64_t seed) : random_(seed) {}

  trace draw(std::size_t num_events);

 private:
  setup draw_setup();
  void draw_mood();
  event draw_event();
  event make(event_kind kind, std::array<std::uint32_t, event::max_numbers> numbers = {}) const { return {kind, numbers}; }
  event draw_submit();

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  bool one_in(std::uint32_t count) { return below(count) == 0; }

  std::mt19937_64 random_;
  std::array<std::uint32_t, event_names.size()> weights_{};
};

}  // namespace sluice::simulation
