// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include <sluice/actors/scheduler/scheduler_config.hpp>
#include <sluice/gpu/device.hpp>
#include <sluice/messages/errc.hpp>
#include <sluice/runtime/options.hpp>

namespace sluice::inline v0 {

/// Options checked and resolved against a device and a model.
struct engine_plan {
  scheduler_config scheduler;
  std::uint64_t pool_bytes = 0;
  std::uint64_t tier_bytes = 0;  ///< whole slots only
};

/// `available_host_bytes` is what the process may still touch.
/// Errors: invalid_argument (which option, what was given, what is allowed), insufficient_memory.
tl::expected<engine_plan, error> plan_engine(const runtime_options& options, const gpu::device& device,
                                             const model_executor& model, std::uint64_t available_host_bytes);

}  // namespace sluice::inline v0
