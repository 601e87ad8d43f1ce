// SPDX-License-Identifier: Apache-2.0
//
// Hazards of what a request takes over from the caches.
#include <algorithm>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct hazard_prefix : both_schedulings {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_prefix);

// PREFIX-06, F = 1. Guards: a host hit for which the device has no room makes the request wait, not fail; the usage
// says what was really taken over.
TEST_P(hazard_prefix, prefix_06_waits_when_there_is_no_room_for_what_matched) {
  test_engine engine(options(8));
  engine.warm_host(make_prompt(12));
  const auto older = engine.submit(make_prompt(17, 101), 8);
  ASSERT_TRUE(engine.run_until_tokens(older, 21));
  ASSERT_EQ(engine.snapshot().blocks.held, 6U);  // one is left, of the three that matched
  const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 4);
  ASSERT_TRUE(engine.system.run_until([&] {
    const auto request = engine.request(id);
    return request && request->reason == waiting_reason::no_blocks;
  }));
  EXPECT_EQ(engine.request(id)->phase, request_phase::waiting);
  EXPECT_FALSE(engine.has_ended(older));
  EXPECT_TRUE(engine.loads().empty());
  engine.run_to_idle();
  EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 12U);
  EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, 0U);
  EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1, 2}));
  engine.expect_reference(older);
  engine.expect_reference(id);
}

// DESIGN section 5, F = 1. Guards: of a failed load the good blocks before the first bad one are kept, the tier's
// entries from it on are dropped, and every waiter computes from there.
TEST_P(hazard_prefix, a_failed_load_is_used_up_to_its_first_bad_block) {
  test_engine engine(options(100));
  engine.warm_host(make_prompt(12));
  std::vector<request_id> ids;
  for (token_id last : {201, 202}) ids.push_back(engine.submit(make_prompt(12) + std::vector<token_id>{last}, 3));
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  const auto load = engine.loads()[0];
  ASSERT_EQ(engine.snapshot().slots.ready, 3U);
  ASSERT_TRUE(engine.device.fail_copies(load.value, 1, gpu::manual::bad_copy::torn));
  ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().loads_failed == 1; }));
  EXPECT_EQ(engine.snapshot().slots.ready, 1U);
  engine.run();
  for (auto id : ids) {
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, 4U);
    engine.expect_reference(id);
  }
  EXPECT_EQ(engine.totals().recomputed_tokens, 0U);  // they had computed nothing
  engine.run_to_idle();
  EXPECT_EQ(engine.snapshot().slots.ready, 3U);  // stored again
  EXPECT_EQ(engine.totals().loads_ok, 0U);
}

// PREFIX-04, F = 1, without its store budget, which does not exist here. Guards: every full block of a prompt that was
// computed in five chunks, and of what was decoded, gets into the host tier and is found there.
TEST_P(hazard_prefix, prefix_04_all_full_blocks_are_stored_and_found) {
  auto in_chunks = options(100);
  in_chunks.max_num_batched_tokens = 16;
  test_engine engine(std::move(in_chunks));
  const auto id = engine.complete_request(make_prompt(80), 10);  // computes 89
  EXPECT_EQ(engine.snapshot().slots.ready, 22U);
  const auto stored = engine.traffic().stored_ordinals(id);
  for (std::uint32_t ordinal = 0; ordinal < 22; ++ordinal)
    EXPECT_EQ(std::count(stored.begin(), stored.end(), ordinal), 1) << ordinal;
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto again = engine.complete_request(make_prompt(80), 2);
  EXPECT_EQ(engine.record(again).summary->usage.num_host_cached_tokens, 79U);  // the last token is computed again
  EXPECT_EQ(engine.traffic().loaded_ordinals(again).size(), 20U);
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto longer = engine.complete_request(make_prompt(80) + engine.record(id).tokens, 2);
  EXPECT_EQ(engine.record(longer).summary->usage.num_host_cached_tokens, 88U);
  for (auto done : {id, again, longer}) engine.expect_reference(done);
}

/// Ten conversations that take turns; each starts with its own marker token.
struct conversations {
  explicit conversations(test_engine& test_engine) : engine(test_engine) {
    for (token_id c = 0; c < 10; ++c) prompts.push_back({200 + c, 7, 7, 7, 7, 7, 7, 7, 7});
  }

  void take_turns() {
    std::vector<request_id> ids;
    for (const auto& prompt : prompts) ids.push_back(engine.submit(prompt, 6));
    engine.run_to_idle();
    turn_over(ids);
  }

  /// The last to have spoken is the first to speak again.
  void turn_over(const std::vector<request_id>& ids) {
    for (std::size_t c = 0; c < prompts.size(); ++c) {
      check(ids[c]);
      prompts[c] = prompts[c] + engine.record(ids[c]).tokens + std::vector<token_id>{7, 7, 7, 7, 7};
    }
    std::reverse(prompts.begin(), prompts.end());
  }

  /// What was not computed is what the usage says was cached, and what was loaded is its host part.
  void check(request_id id) {
    engine.expect_reference(id);
    const auto usage = engine.record(id).summary->usage;
    ASSERT_EQ(usage.num_preemptions, 0U);
    const auto entries = engine.traffic().entries_of(id);
    EXPECT_EQ(usage.num_device_cached_tokens + usage.num_host_cached_tokens, entries.at(0).first_position);
    EXPECT_EQ(usage.num_host_cached_tokens, 4 * engine.traffic().loaded_ordinals(id).size());
    std::size_t num_computed = 0;
    for (const auto& entry : entries) num_computed += entry.tokens.size();
    EXPECT_EQ(entries.at(0).first_position + num_computed, usage.num_prompt_tokens + usage.num_output_tokens - 1);
    num_host_cached += usage.num_host_cached_tokens;
    num_device_cached += usage.num_device_cached_tokens;
  }

  test_engine& engine;
  std::vector<std::vector<token_id>> prompts;
  std::uint64_t num_host_cached = 0, num_device_cached = 0;
};

// PREFIX-07, F = 1, two at a time, 40 requests. The host has room for half of what is stored, the device for three
// conversations. Guards: what is restored is what was matched, no content crosses conversations, the usage is true.
TEST_P(hazard_prefix, prefix_07_no_content_crosses_conversations) {
  auto two_at_once = options(30);
  two_at_once.max_num_seqs = 2;
  two_at_once.num_host_slots = 50;
  test_engine engine(std::move(two_at_once));
  conversations all(engine);
  for (int turn = 0; turn < 4; ++turn) all.take_turns();
  EXPECT_GT(all.num_device_cached, 0U);
  EXPECT_GT(engine.totals().host_evictions, 0U);
  EXPECT_GT(engine.totals().device_evictions, 0U);
  EXPECT_GT(all.num_host_cached, 0U);
  EXPECT_EQ(engine.totals().finished_length, 40U);
  EXPECT_GT(engine.model.num_verified_positions(), 0U);
}

}  // namespace
}  // namespace sluice::testing
