// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <support/test_engine.hpp>

#include "checking_tier.hpp"
#include "trace.hpp"

namespace sluice::simulation {

/// How a test engine is built to be set up so. `max_model_len`, which must outlive the engine, is set once it is built:
/// the longest request that fits.
testing::engine_options make_options(const setup& setup, checking_tier::hooks hooks, std::uint32_t& max_model_len);

}  // namespace sluice::simulation
