// SPDX-License-Identifier: Apache-2.0
//
// A scheduler's state without actors: the test plans, applies, commits and settles by hand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/apply_plan.hpp>
#include <sluice/actors/scheduler/commit_step.hpp>
#include <sluice/actors/scheduler/host_tier_index.hpp>
#include <sluice/actors/scheduler/settle_transfers.hpp>
#include <sluice/actors/scheduler/step_planner.hpp>

namespace sluice::unit {

struct scheduler_options {
  std::uint32_t block_size = 4;
  std::uint32_t num_device_blocks = 100;
  std::uint32_t num_host_slots = 0;
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_num_batched_tokens = 2048;
  bool enable_prefix_caching = true;
};

inline std::vector<std::uint32_t> values(const std::vector<block_id>& blocks) {
  std::vector<std::uint32_t> found;
  for (const auto block : blocks) found.push_back(block.value);
  return found;
}

inline std::vector<std::uint64_t> values(const std::vector<transfer_id>& transfers) {
  std::vector<std::uint64_t> found;
  for (const auto transfer : transfers) found.push_back(transfer.value);
  return found;
}

inline std::vector<std::uint64_t> values(const std::vector<request_id>& requests) {
  std::vector<std::uint64_t> found;
  for (const auto request : requests) found.push_back(request.value);
  return found;
}

inline std::vector<std::uint64_t> values(const std::vector<planned_preemption>& victims) {
  std::vector<std::uint64_t> found;
  for (const auto& victim : victims) found.push_back(victim.request.value);
  return found;
}

/// The free list, first to be handed out first.
inline std::vector<std::uint32_t> free_list(const block_pool& pool) {
  std::vector<std::uint32_t> found;
  for (auto block = pool.first_allocatable(); block != null_block; block = pool.next_allocatable(block))
    found.push_back(block.value);
  return found;
}

/// `count` tokens that differ from those of any other `first` a multiple of 1000 away.
inline std::vector<token_id> tokens_from(token_id first, std::size_t count) {
  std::vector<token_id> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(first + static_cast<token_id>(i));
  return tokens;
}

/// All of a plan, but for the waits, on one line per part: "entry 1@0+8 samples [1 2]".
inline std::string to_text(const step_plan& plan) {
  std::string text;
  auto number = [&](auto n) { text += " " + std::to_string(n); };
  auto list = [&](std::string_view name, const auto& ids) {
    text += std::string(" ") + std::string(name) + " [";
    for (const auto id : ids) number(id.value);
    text += " ]";
  };
  for (const auto& victim : plan.preempted) text += " preempted", number(victim.request.value), text += "\n";
  for (const auto& failure : plan.failures) text += " failure", number(failure.request.value), text += "\n";
  for (const auto& admission : plan.admissions) {
    text += " admission", number(admission.request.value);
    for (const auto& table : admission.tables) list("shared", table.shared);
    if (admission.load)
      for (const auto& part : admission.load->parts) list("load", part.blocks);
    text += " computed", number(admission.num_computed_tokens), text += "\n";
  }
  for (const auto& entry : plan.entries) {
    text += " entry", number(entry.request.value), number(entry.first_position), number(entry.num_tokens);
    if (entry.samples) text += " samples";
    for (const auto& blocks : entry.new_blocks) list("blocks", blocks);
    text += "\n";
  }
  if (!plan.reused_stores.empty()) list("reused", plan.reused_stores), text += "\n";
  return text;
}

class scheduler_fixture {
 public:
  explicit scheduler_fixture(const scheduler_options& options = {})
      : state(make_config(options), options.num_host_slots == 0
                                        ? nullptr
                                        : std::make_unique<host_tier_index>(options.num_host_slots,
                                                                            make_lru_policy(options.num_host_slots))) {}

  request_record& submit(std::uint64_t id, std::vector<token_id> prompt, std::uint32_t max_tokens = 64,
                         std::string salt = {}) {
    request_params params;
    params.id = {id};
    params.prompt = std::move(prompt);
    params.max_tokens = max_tokens;
    params.cache_salt = std::move(salt);
    auto& request = state.requests.add(std::move(params), 1);
    extend_keys(state, request);
    return request;
  }

  const request_record& request(std::uint64_t id) const { return *state.requests.find(request_id{id}); }
  std::vector<std::uint32_t> table(std::uint64_t id) const { return values(request(id).groups[0].table); }

  step_plan plan() const { return plan_step(state, {state.last_step.value + 1}); }

  /// Applies and dispatches `plan` and lets every sampling entry sample token 7; stores it creates wait in `stores`.
  std::vector<transfer_job> run(const step_plan& plan) {
    auto loads = apply_plan(state, plan);
    for (const auto& failure : plan.failures) end_request(state, failure.request, finish_reason::error, failure.code);
    state.unreported_preemptions.clear();
    step_result result{plan.step, {}};
    for (const auto& entry : plan.entries)
      if (entry.samples) result.sampled.push_back({entry.request, entry.attempt, 7});
    auto effects = commit_step(state, plan, result);
    stores.insert(stores.end(), effects.stores.begin(), effects.stores.end());
    EXPECT_EQ(check_integrity(state), std::vector<std::string>{});
    return loads;
  }

  step_plan run_step() {
    auto planned = plan();
    run(planned);
    return planned;
  }

  void abort(std::uint64_t id) { end_request(state, {id}, finish_reason::abort); }

  void settle(transfer_direction direction, transfer_id id, transfer_result result = transfer_result::ok) {
    EXPECT_EQ(settle_transfers(state, {direction, {{id, result, 0, {}, false}}}), 0U);
  }
  void settle_stores() {
    for (const auto& store : stores) settle(transfer_direction::store, store.id);
    stores.clear();
  }

  /// Computes `prompt` and ends the request; its blocks stay cached, its stores settle where `are_settled`.
  void compute_and_end(std::uint64_t id, std::vector<token_id> prompt, bool are_settled = true) {
    submit(id, std::move(prompt), 1);
    while (state.requests.find({id}) != nullptr) run_step();
    if (are_settled) settle_stores();
  }

  scheduler_state state;
  std::vector<transfer_job> stores;

 private:
  static scheduler_config make_config(const scheduler_options& options) {
    scheduler_config config;
    config.model = {"test", "u8", 100000, 1000, {}};
    config.kv.groups = {{kv_group_spec::kind::full_attention, 0, options.block_size}};
    config.kv.bytes_per_block = 64;
    config.num_device_blocks = options.num_device_blocks;
    config.num_host_slots = options.num_host_slots;
    config.max_model_len = 100000;
    config.max_num_seqs = options.max_num_seqs;
    config.max_num_batched_tokens = options.max_num_batched_tokens;
    config.enable_prefix_caching = options.enable_prefix_caching;
    config.async_scheduling = false;
    return config;
  }
};

}  // namespace sluice::unit
