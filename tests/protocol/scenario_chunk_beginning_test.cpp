// SPDX-License-Identifier: Apache-2.0
//
// Hits that end inside a chunk: a stored chunk serves every request that begins with its leading blocks.
#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

/// F = 4 blocks of 4 tokens per chunk; the host has three chunks of `known`.
struct scenario_chunk_beginning : both_schedulings {
  static engine_options options() {
    auto options = sized(4, 4, 100);
    options.async_scheduling = GetParam();
    return options;
  }

  static std::vector<token_id> leading(std::size_t num_tokens) {
    auto tokens = make_prompt(52);
    tokens.resize(num_tokens);
    return tokens;
  }

  static std::vector<token_id> others(std::size_t num_tokens) { return make_prompt(num_tokens, 150); }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_chunk_beginning);

struct beginning_case {
  std::uint32_t num_prompt_tokens, num_on_device, max_load_tokens, num_loaded;
};

void expect_loaded(test_engine& engine, const beginning_case& expected) {
  request_params params;
  params.prompt = make_prompt(52);
  params.prompt.resize(expected.num_prompt_tokens);
  params.max_tokens = 2;
  params.max_load_tokens = expected.max_load_tokens;
  const auto id = engine.submit(params);
  engine.run();
  EXPECT_EQ(engine.loads().size(), expected.num_loaded == 0 ? 0U : 1U);
  engine.run_to_idle();
  const auto& usage = engine.record(id).summary->usage;
  EXPECT_EQ(usage.num_device_cached_tokens, expected.num_on_device);
  EXPECT_EQ(usage.num_host_cached_tokens, expected.num_loaded);
  EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, expected.num_on_device + expected.num_loaded);
  engine.expect_reference(id);
}

// O033: 30 tokens, at most 20 to load. O036 (a), (c): 16 on the device; (b) is without hits inside chunks
// (scenario_policy); of (d) the cap is ignored where there is none. Guards: the cap counts tokens beyond the device's,
// in whole blocks.
TEST_P(scenario_chunk_beginning, o033_o036_loads_leading_blocks_of_a_chunk) {
  const std::vector<beginning_case> cases{{30, 0, 20, 20}, {30, 16, 8, 8},  {30, 16, 0, 0},
                                          {30, 0, no_token_limit, 28},      {30, 16, no_token_limit, 12},
                                          {30, 20, no_token_limit, 8},      {31, 24, 3, 0},
                                          {7, 0, no_token_limit, 4},        {3, 0, no_token_limit, 0}};
  for (std::size_t at = 0; at < cases.size(); ++at) {
    SCOPED_TRACE(at);
    test_engine engine(options());
    engine.warm_host(make_prompt(52));
    if (cases[at].num_on_device > 0) engine.complete_request(leading(cases[at].num_on_device), 1);
    expect_loaded(engine, cases[at]);
  }
}

// Guards: a prompt that goes on differently loads what it shares, computes the rest, and stores its own chunk, which
// serves the next one.
TEST_P(scenario_chunk_beginning, a_chunk_that_goes_on_differently_is_stored_as_its_own) {
  test_engine engine(options());
  engine.warm_host(make_prompt(52));
  const auto id = engine.complete_request(leading(24) + others(12), 1);
  EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{4, 5, 6, 7}));
  EXPECT_EQ(engine.snapshot().slots.ready, 4U);
  engine.expect_reference(id);
  EXPECT_TRUE(engine.reset(false, false).success);
  for (const auto& prompt : {leading(24) + others(12), leading(40) + others(8)}) {
    const auto next = engine.complete_request(prompt, 1);
    EXPECT_EQ(engine.record(next).summary->usage.num_host_cached_tokens, prompt.size() == 36 ? 32U : 40U);
    engine.expect_reference(next);
    EXPECT_TRUE(engine.reset(false, false).success);
  }
}

// Guards: a load of another request's chunk that fails drops that chunk, and the request computes.
TEST_P(scenario_chunk_beginning, a_failed_load_drops_the_chunk_it_read) {
  test_engine engine(options());
  engine.warm_host(make_prompt(52));
  const auto id = engine.submit(leading(24) + others(2), 1);
  engine.run();
  engine.fail(engine.loads().at(0), 1);
  engine.run_to_idle();
  engine.expect_reference(id);
  EXPECT_EQ(engine.snapshot().slots.ready, 2U);
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto next = engine.complete_request(leading(24) + others(2), 1);
  EXPECT_EQ(engine.record(next).summary->usage.num_host_cached_tokens, 16U);
}

// Guards: a chunk that is still being written, or has been forgotten, serves nobody's beginning.
TEST_P(scenario_chunk_beginning, only_a_ready_chunk_serves_a_beginning) {
  test_engine engine(options());
  engine.submit(leading(17), 1);
  engine.run();
  ASSERT_EQ(engine.stores().size(), 1U);
  EXPECT_TRUE(engine.reset(false, false).success);
  engine.submit(leading(9), 1);
  engine.run();
  EXPECT_TRUE(engine.loads().empty());
  engine.run_to_idle();
  EXPECT_TRUE(engine.reset(false, true).success);
  const auto id = engine.complete_request(leading(9), 1);
  EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 0U);
}

// Guards: what of a window is stored serves hits between chunks only.
TEST_P(scenario_chunk_beginning, not_with_windows) {
  auto some = options();
  some.model.groups = {{kv_group_spec::kind::full_attention, 0, 4}, {kv_group_spec::kind::sliding_window, 8, 4}};
  test_engine engine(std::move(some));
  engine.warm_host(make_prompt(52));
  expect_loaded(engine, {30, 0, no_token_limit, 16});
}

}  // namespace
}  // namespace sluice::testing
