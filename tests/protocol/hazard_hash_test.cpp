// SPDX-License-Identifier: Apache-2.0
//
// Hazards of what a chunk is known by.
#include <set>

#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct hazard_hash : both_schedulings {
  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_hash);

// HASH-01. Guards: requests with another salt, or none, share nothing, neither on the device nor through the host; the
// same salt does.
TEST_P(hazard_hash, hash_01_salts_share_nothing) {
  test_engine engine(options());
  const auto usage_of = [&](const std::string& salt) {
    const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 3, {}, salt);
    engine.run_to_idle();
    engine.expect_reference(id);
    return engine.record(id).summary->usage;
  };
  for (const std::string salt : {"x", "y", "", "xy"}) {
    const auto usage = usage_of(salt);
    EXPECT_EQ(usage.num_device_cached_tokens + usage.num_host_cached_tokens, 0U) << salt;
  }
  for (const std::string salt : {"x", "y", "", "xy"}) EXPECT_EQ(usage_of(salt).num_device_cached_tokens, 12U) << salt;
  EXPECT_TRUE(engine.reset(false, false).success);
  for (const std::string salt : {"x", "y", "", "xy"}) EXPECT_EQ(usage_of(salt).num_host_cached_tokens, 12U) << salt;
  EXPECT_EQ(engine.snapshot().slots.ready, 12U);
  EXPECT_EQ(usage_of("z").num_host_cached_tokens, 0U);
}

// HASH-01. Guards: what is matched never exceeds the prompt less its last token, down to prompts that fill no block.
TEST_P(hazard_hash, hash_01_a_match_is_shorter_than_the_prompt) {
  for (std::size_t num_tokens = 1; num_tokens <= 9; ++num_tokens) {
    test_engine engine(options());
    engine.warm_host(make_prompt(num_tokens));
    for (int i = 0; i < 2; ++i) {  // from the host, then from the device
      const auto id = engine.complete_request(make_prompt(num_tokens), 2);
      engine.expect_reference(id);
      const auto usage = engine.record(id).summary->usage;
      const auto num_full = static_cast<std::uint32_t>(num_tokens / 4 * 4);
      const auto num_cached = usage.num_device_cached_tokens + usage.num_host_cached_tokens;
      EXPECT_LE(num_cached, num_full);
      EXPECT_LE(num_cached, num_tokens - 1);
    }
  }
}

// HASH-03, as far as it applies: keys are SHA-256 and no hook makes those of different tokens equal, so the two
// prompts are the same. Guards: a key has one owner, on the device and in the tier: whoever comes second with it
// computes alone, is not indexed and stores nothing, and the first one's blocks are what is found.
TEST_P(hazard_hash, hash_03_a_key_has_one_owner) {
  auto held = options();
  held.holds_compute = true;
  test_engine engine(std::move(held));
  engine.submit(make_prompt(3, 61), 1);
  engine.run();  // a step is in flight, so that neither of the next two finds the other's blocks
  const auto prompt = make_prompt(12) + std::vector<token_id>{201};
  const auto p1 = engine.submit(prompt, 2);
  const auto p2 = engine.submit(prompt, 2);
  engine.run_to_idle();
  for (auto id : {p1, p2}) EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, 0U);
  EXPECT_EQ(engine.snapshot().blocks.cached, 3U);
  EXPECT_EQ(engine.snapshot().slots.ready, 3U);
  EXPECT_TRUE(engine.traffic().stores_of(p2).empty());
  const auto again = engine.complete_request(prompt, 2);
  EXPECT_EQ(engine.record(again).summary->usage.num_device_cached_tokens, 12U);
  const auto table = engine.traffic().entries_of(again).at(0).block_tables.at(0);
  const auto of_first = engine.traffic().entries_of(p1).at(0).block_tables.at(0);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(table.at(i), of_first.at(i));
  for (auto id : {p1, p2, again}) engine.expect_reference(id);
}

/// The keys under which a 12-token prompt is stored by an engine of its own.
std::vector<chunk_key> stored_keys(engine_options options, std::uint32_t num_chunks, const std::string& salt = {}) {
  auto owned = std::make_unique<scripted_tier>(options.num_host_slots);
  auto& tier = *owned;
  options.tier = std::move(owned);
  test_engine engine(std::move(options));
  engine.submit(make_prompt(12), 1, {}, salt);
  engine.run_to_idle();
  EXPECT_EQ(tier.offers().size(), 1U);
  EXPECT_EQ(tier.offers().at(0).keys.size(), num_chunks);
  return tier.offers().at(0).keys;
}

// HASH-05, without its restart: there is no tier that outlives a process. Guards: keys are the same in every engine of
// the same model, layout and salt, and share nothing if any of these differ.
TEST_P(hazard_hash, hash_05_keys_are_stable_and_tell_engines_apart) {
  const auto keys = stored_keys(options(), 3);
  EXPECT_EQ(stored_keys(options(), 3), keys);
  auto larger_pool = options();
  larger_pool.num_device_blocks = 200;
  EXPECT_EQ(stored_keys(std::move(larger_pool), 3), keys);

  std::vector<std::vector<chunk_key>> others;
  auto other_name = options();
  other_name.adjust = [](scheduler_config& config) { config.model.name = "other"; };
  others.push_back(stored_keys(std::move(other_name), 3));
  auto other_type = options();
  other_type.adjust = [](scheduler_config& config) { config.model.dtype = "other"; };
  others.push_back(stored_keys(std::move(other_type), 3));
  auto other_bytes = options();
  other_bytes.model.bytes_per_token = 128;
  others.push_back(stored_keys(std::move(other_bytes), 3));
  auto other_block_size = options();
  other_block_size.block_size = 6;
  others.push_back(stored_keys(std::move(other_block_size), 2));
  others.push_back(stored_keys(options(), 3, "salt"));
  std::set<content_key> all;
  std::size_t num_keys = 0;
  others.push_back(keys);
  for (const auto& some : others)
    for (const auto& key : some) {
      all.insert(key.content);
      ++num_keys;
    }
  EXPECT_EQ(all.size(), num_keys);
}

}  // namespace
}  // namespace sluice::testing
