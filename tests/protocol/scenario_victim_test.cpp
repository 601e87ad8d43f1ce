// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of requests that are preempted for want of blocks, and of requests that wait for lookups while others run.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

struct scenario_victim : both_schedulings {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_victim);

struct victim_case {
  const char* name;
  bool offloads;
  std::uint32_t num_host_slots;
  ordinals saved;  // stored at the preemption, and loaded afterwards
};

/// Ten usable blocks. An older request needs its seventh block when the victim has three complete blocks and a partial
/// one, and takes all ten in the end, so that nothing of the victim is left on the device. It starts a step before the
/// victim, asynchronous two.
struct outgrown_pool {
  explicit outgrown_pool(test_engine& engine) {
    const bool is_async = engine.options.async_scheduling;
    older = engine.submit(make_prompt(is_async ? 17 : 18, 101), is_async ? 23 : 22);
    victim = engine.submit(make_prompt(10, 1), 12);
    EXPECT_TRUE(engine.run_until_boundary());
    EXPECT_EQ(engine.totals().preemptions_capacity, 1U);
    const auto preempted = engine.request(victim);
    EXPECT_TRUE(preempted.has_value());
    if (!preempted) return;
    EXPECT_EQ(preempted->phase, request_phase::waiting);
    EXPECT_EQ(preempted->num_blocks, 0U);
    num_tokens = preempted->num_tokens;
    EXPECT_EQ(num_tokens, is_async ? 15U : 16U);
  }
  request_id older, victim;
  std::uint32_t num_tokens = 0;  // of the victim; the last one is not computed
};

/// The first entry of the request after it was preempted once.
batch_entry resumed_entry(test_engine& engine, request_id id) {
  const auto entries = engine.traffic().entries_of(id);
  const auto found = std::find_if(entries.begin(), entries.end(), [](const auto& e) { return e.attempt.value == 2; });
  EXPECT_NE(found, entries.end()) << "it was not resumed";
  return found == entries.end() ? batch_entry{} : *found;
}

engine_options for_victims(engine_options options, const victim_case& tried) {
  options.num_host_slots = tried.num_host_slots;
  options.adjust = [offloads = tried.offloads](scheduler_config& config) {
    config.preemption_offload = offloads;
    config.offload = offload_scope::preempted;
  };
  return options;
}

// O137, preempted for want of blocks, F = 1. Guards: a victim's complete chunks are saved in the boundary of its
// preemption and loaded when it resumes, which then computes the partial tail alone; otherwise it computes everything
// again, also when the tier has no room for it. Who is never preempted leaves nothing in the tier.
TEST_P(scenario_victim, o137_a_victim_computes_again_what_could_not_be_saved) {
  for (const auto& tried : {victim_case{"saved", true, 64, {0, 1, 2}}, victim_case{"not saved", false, 64, {}},
                            victim_case{"small tier", true, 2, {}}, victim_case{"no tier", true, 0, {}}}) {
    SCOPED_TRACE(tried.name);
    test_engine engine(for_victims(options(11), tried));
    const outgrown_pool run(engine);
    engine.run();
    EXPECT_EQ(engine.traffic().stored_ordinals(run.victim), tried.saved);
    EXPECT_EQ(engine.traffic().flushed(), engine.traffic().stores_of(run.victim));
    EXPECT_EQ(engine.snapshot().is_boundary_open, !tried.saved.empty());
    EXPECT_EQ(engine.totals().refused_offers, tried.num_host_slots == 2 ? 1U : 0U);
    engine.run_to_idle();
    const auto num_saved = static_cast<std::uint32_t>(tried.saved.size());
    EXPECT_EQ(engine.traffic().loaded_ordinals(run.victim), tried.saved);
    EXPECT_EQ(engine.traffic().stored_ordinals(run.victim), tried.saved);
    EXPECT_TRUE(engine.traffic().stores_of(run.older).empty());
    EXPECT_EQ(engine.snapshot().slots.ready, num_saved);
    const auto resumed = resumed_entry(engine, run.victim);
    EXPECT_EQ(resumed.first_position, 4 * num_saved);
    EXPECT_EQ(resumed.tokens.size(), run.num_tokens - 4 * num_saved);
    EXPECT_EQ(engine.totals().recomputed_tokens, run.num_tokens - 1 - 4 * num_saved);
    EXPECT_EQ(engine.record(run.victim).summary->usage.num_preemptions, 1U);
    EXPECT_EQ(engine.record(run.older).summary->usage.num_preemptions, 0U);
    engine.expect_reference(run.older);
    engine.expect_reference(run.victim);
  }
}

// F = 1, three slots, and three more device blocks, of a request whose load pins all slots meanwhile. Guards: a tier
// that is full of what is in use takes nothing of a victim and gives up nothing for it; the victim computes everything
// again, and waits for nobody.
TEST_P(scenario_victim, a_victim_of_a_busy_tier_computes_everything_again) {
  auto busy = options(14);
  busy.num_host_slots = 3;
  test_engine engine(std::move(busy));
  engine.warm_host(make_prompt(12, 201));
  const auto loading = engine.submit(make_prompt(12, 201), 1);
  engine.run();
  EXPECT_EQ(engine.snapshot().slots.pinned, 3U);
  const auto before = engine.totals();
  const outgrown_pool run(engine);
  EXPECT_GT(engine.totals().refused_offers, before.refused_offers);
  engine.run();
  EXPECT_EQ(engine.request(loading)->phase, request_phase::loading);
  EXPECT_TRUE(engine.traffic().stores_of(run.victim).empty());
  EXPECT_TRUE(engine.traffic().loads_of(run.victim).empty());
  EXPECT_EQ(resumed_entry(engine, run.victim).first_position, 0U);
  EXPECT_EQ(engine.totals().recomputed_tokens, run.num_tokens - 1);
  EXPECT_EQ(engine.totals().host_evictions, before.host_evictions);
  engine.expect_reference(run.older);
  engine.expect_reference(run.victim);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(loading), (ordinals{0, 1, 2}));
  engine.expect_reference(loading);
}

// F = 1, nine usable blocks for three requests that need five each. Guards: of several the one with the highest number
// is preempted, wherever it stands; the one with the lowest never.
TEST_P(scenario_victim, the_highest_number_is_preempted_first) {
  auto ordered = options(10);
  ordered.adjust = [](scheduler_config& config) { config.order = scheduling_policy::priority; };
  test_engine engine(std::move(ordered));
  std::vector<request_id> ids;
  const std::vector<std::int32_t> priorities{5, 9, 1};
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    request_params params;
    params.prompt = make_prompt(8, static_cast<token_id>(1 + 70 * i));
    params.max_tokens = 12;
    params.priority = priorities[i];
    ids.push_back(engine.submit(std::move(params)));
  }
  ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().preemptions_priority > 0; }));
  EXPECT_EQ(engine.totals().preemptions_priority, 1U);
  EXPECT_EQ(engine.request(ids[0])->phase, request_phase::running);
  EXPECT_EQ(engine.request(ids[1])->phase, request_phase::waiting);
  EXPECT_EQ(engine.request(ids[2])->phase, request_phase::running);
  engine.run_to_idle();
  EXPECT_GE(engine.record(ids[1]).summary->usage.num_preemptions, 1U);
  EXPECT_EQ(engine.record(ids[2]).summary->usage.num_preemptions, 0U);
  EXPECT_EQ(engine.totals().preemptions_capacity, 0U);
  for (auto id : ids) engine.expect_reference(id);
}

/// A request of 600 tokens that waits for lookups: 150 chunks, F = 1.
struct waiting_lookups {
  waiting_lookups(test_engine& engine, scripted_tier& tier) {
    tier.answer_lookups(lookup_verdict::retry);
    id = engine.submit(make_prompt(600), 2);
    engine.run();
    EXPECT_EQ(tier.take_lookups().size(), 150U);
    expect_waiting(engine);
  }
  void expect_waiting(test_engine& engine) const {
    const auto waiting = engine.request(id);
    ASSERT_TRUE(waiting.has_value());
    EXPECT_EQ(waiting->phase, request_phase::waiting);
    EXPECT_EQ(waiting->reason, waiting_reason::lookup_pending);
    EXPECT_EQ(waiting->num_blocks, 0U);
  }
  request_id id;
};

engine_options with_tier(engine_options options, scripted_tier*& tier) {
  auto owned = std::make_unique<scripted_tier>(options.num_host_slots);
  tier = owned.get();
  options.tier = std::move(owned);
  options.adjust = [](scheduler_config& config) { config.lookup_timeout = 3s; };
  return options;
}

// Guards: waiting for a lookup costs nothing per step: nothing is looked up again while others run, until there is an
// answer.
TEST_P(scenario_victim, a_request_that_waits_for_a_lookup_costs_no_step_anything) {
  scripted_tier* tier = nullptr;
  test_engine engine(with_tier(options(300), tier));
  const waiting_lookups waiting(engine, *tier);
  tier->answer_lookups(lookup_verdict::miss);
  const auto other = engine.submit(make_prompt(8, 101), 30);
  ASSERT_TRUE(engine.run_until_tokens(other, 9));
  EXPECT_EQ(tier->take_lookups().size(), 1U);  // its own, up to the first miss
  const auto steps = engine.totals().steps;
  ASSERT_TRUE(engine.run_until_tokens(other, 29));
  EXPECT_EQ(engine.totals().steps, steps + 20);
  EXPECT_TRUE(tier->take_lookups().empty());
  waiting.expect_waiting(engine);
  compat::anon_mail(lookups_answered{}).send(engine.scheduler);
  engine.run_to_idle();
  EXPECT_EQ(tier->take_lookups().size(), 1U);
  EXPECT_TRUE(engine.traffic().loads_of(waiting.id).empty());
  engine.expect_reference(waiting.id);
  engine.expect_reference(other);
}

// Guards: the wait for a lookup ends with lookup_timeout, not before, and what has no answer then is computed.
TEST_P(scenario_victim, the_wait_for_a_lookup_ends_with_its_timeout) {
  scripted_tier* tier = nullptr;
  test_engine engine(with_tier(options(300), tier));
  const waiting_lookups waiting(engine, *tier);
  engine.system.advance(3s - 1ns);
  engine.run();
  waiting.expect_waiting(engine);
  EXPECT_TRUE(tier->take_lookups().empty());
  engine.system.advance(1ns);
  engine.run_to_idle();
  ASSERT_TRUE(engine.has_ended(waiting.id));
  EXPECT_EQ(tier->take_lookups().size(), 1U);  // what has no answer is a miss, and the first one ends the scan
  EXPECT_TRUE(engine.traffic().loads_of(waiting.id).empty());
  EXPECT_EQ(engine.traffic().entries_of(waiting.id).at(0).first_position, 0U);
  engine.expect_reference(waiting.id);
  tier->answer_lookups(std::nullopt);
}

}  // namespace
}  // namespace sluice::testing
