// SPDX-License-Identifier: Apache-2.0
#include "engine_setup.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::simulation {

namespace {

const std::vector<std::vector<kv_group_spec>>& layouts() {
  constexpr auto full = kv_group_spec::kind::full_attention;
  constexpr auto window = kv_group_spec::kind::sliding_window;
  static const std::vector<std::vector<kv_group_spec>> all{{{full, 0, 4}},
                                                           {{full, 0, 4}, {window, 8, 4}},
                                                           {{full, 0, 8}, {window, 5, 4}},
                                                           {{full, 0, 6}, {full, 0, 4}},
                                                           {{window, 7, 4}},
                                                           {{window, 12, 8}, {window, 3, 4}, {full, 0, 4}},
                                                           {{full, 0, 4}, {full, 0, 8}, {window, 16, 4}},
                                                           {{full, 0, 2}}};
  return all;
}

}  // namespace

testing::engine_options make_options(const setup& setup, checking_tier::hooks hooks, std::uint32_t& max_model_len) {
  testing::engine_options options = testing::sized(4, std::max(setup.blocks_per_chunk, 1U), 0);
  options.model.groups = layouts()[setup.group_layout % layouts().size()];
  options.block_size = options.model.groups[0].block_size;
  const auto num_groups = static_cast<std::uint32_t>(options.model.groups.size());
  options.num_device_blocks = std::max(setup.num_device_blocks, 12U) + 16 * (num_groups - 1);
  options.num_host_slots = setup.num_host_slots;
  options.max_num_seqs = std::max(setup.max_num_seqs, 1U);
  options.max_num_batched_tokens = std::max(setup.max_num_batched_tokens, 1U);
  options.enable_prefix_caching = setup.enable_prefix_caching != 0;
  options.async_scheduling = setup.is_async != 0;
  options.holds_compute = setup.holds_compute != 0;
  options.model.end_one_in = setup.end_one_in;
  options.is_supervised = true;
  if (setup.num_host_slots > 0) {
    const auto policy = setup.is_arc != 0 ? eviction_policy_kind::arc : eviction_policy_kind::lru;
    options.tier = std::make_unique<checking_tier>(
        std::make_unique<host_tier_index>(setup.num_host_slots, make_eviction_policy(policy, setup.num_host_slots)),
        std::move(hooks));
  }
  options.adjust = [&max_model_len, setup](scheduler_config& config) {
    config.preemption_offload = setup.preemption_offload != 0;
    config.order = setup.is_priority != 0 ? scheduling_policy::priority : scheduling_policy::fcfs;
    config.offload = setup.offloads_preempted_only != 0 ? offload_scope::preempted : offload_scope::all;
    config.offload_prompt_only = setup.offload_prompt_only != 0;
    config.storing = setup.stores_whole_requests != 0 ? store_policy::whole_request : store_policy::incremental;
    config.store_threshold = setup.store_threshold;
    config.recompute_budget = setup.recompute_budget;
    config.match_chunk_beginnings = setup.match_chunk_beginnings != 0;
    if (setup.retention_interval > 0)
      config.retention_interval = setup.retention_interval * config.chunk_alignment();
    config.lookup_timeout = std::chrono::seconds{std::max(setup.lookup_timeout_s, 1U)};
    config.transfer_timeout = std::chrono::seconds{std::max(setup.transfer_timeout_s, 1U)};
    while (config.num_blocks_at_most(config.max_model_len) > config.num_device_blocks - 1) --config.max_model_len;
    max_model_len = config.max_model_len;
  };
  return options;
}

}  // namespace sluice::simulation
