// SPDX-License-Identifier: Apache-2.0
#include "replay/scenario.hpp"

#include <array>

namespace sluice::replay {

std::span<const scenario> all_scenarios() {
  // Copies take 150 ms, so that a reset posted when a load is seen in flight lands before the load settles; steps
  // are slow enough for a client to act between two of them.
  static const std::array<scenario, 3> scenarios{
      scenario{"strict",
               {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "1", "--host-copy-latency-ms", "150",
                "--tiny-step-ms", "8"},
               run_strict},
      scenario{
          "plain", {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "1", "--tiny-step-ms", "4"}, run_plain},
      scenario{"same-step",
               {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "1", "--tiny-step-ms", "8"},
               run_same_step},
  };
  return scenarios;
}

}  // namespace sluice::replay
