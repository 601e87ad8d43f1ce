// SPDX-License-Identifier: Apache-2.0
//
// Seeds of randomised tests: a fixed few, or the one in the environment variable SLUICE_TEST_SEED.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sluice::unit {

inline std::vector<std::uint64_t> test_seeds() {
  if (const char* given = std::getenv("SLUICE_TEST_SEED")) return {std::strtoull(given, nullptr, 10)};
  return {1, 2, 3, 4};
}

/// Calls `run(generator)` once per seed; a failure names the seed.
template <class Function>
void for_each_seed(Function&& run) {
  for (const auto seed : test_seeds()) {
    SCOPED_TRACE("SLUICE_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 generator(seed);
    run(generator);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// A number in [0, bound); the same with every standard library.
inline std::uint32_t below(std::mt19937_64& generator, std::size_t bound) {
  return static_cast<std::uint32_t>(generator() % bound);
}

}  // namespace sluice::unit
