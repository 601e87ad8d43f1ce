// SPDX-License-Identifier: Apache-2.0
#include "replay/scenario.hpp"

#include <array>

namespace sluice::replay {

std::span<const scenario> all_scenarios() {
  // In strict, copies take 150 ms, so that a reset posted when a load is seen in flight lands before the load settles;
  // in convoy, 400 ms, so that all streams come while the first one's load is in flight. Steps are slow enough for a
  // client to act between two of them.
  static const std::array<scenario, 6> scenarios{
      scenario{"strict",
               {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "1", "--host-copy-latency-ms", "150",
                "--tiny-step-ms", "8"},
               run_strict},
      scenario{
          "plain", {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "1", "--tiny-step-ms", "4"}, run_plain},
      scenario{"same-step",
               {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "1", "--tiny-step-ms", "8"},
               run_same_step},
      scenario{"pressure",
               {"--num-gpu-blocks-override", "97", "--kv-offloading-size", "0.25", "--blocks-per-chunk", "2",
                "--max-num-batched-tokens", "192"},
               run_pressure},
      scenario{"convoy",
               {"--num-gpu-blocks-override", "1025", "--kv-offloading-size", "0.25", "--host-copy-latency-ms", "400"},
               run_convoy},
      scenario{"pause-keep",
               {"--num-gpu-blocks-override", "320", "--kv-offloading-size", "0.25", "--tiny-step-ms", "6"},
               run_pause_keep},
  };
  return scenarios;
}

std::string count(double number) { return std::to_string(static_cast<std::int64_t>(number)); }

}  // namespace sluice::replay
