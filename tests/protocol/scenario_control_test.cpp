// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of suspending the engine and giving its memory back.
#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

struct scenario_control : both_schedulings {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_control);

bool is_given_back(const test_engine& engine) {
  const auto pool = engine.pool_memory.view();
  return std::all_of(pool.data, pool.data + pool.num_bytes,
                     [](std::byte byte) { return byte == gpu::manual::discarded_poison; });
}

/// Posts a sleep under a transfer of 32 blocks. It is not answered, and no memory is given back, before the transfer's
/// end; then both happen at once.
void expect_sleep_waits_for(test_engine& engine, transfer_id transfer) {
  EXPECT_EQ(engine.traffic().transfer(transfer).blocks().size(), 32U);
  engine.post(sleep_engine{1, pause_mode::keep, false, 60s});
  engine.run();
  for (std::size_t num_copied = 0; num_copied < 32; num_copied += 8) {
    ASSERT_TRUE(engine.device.start_copies(transfer.value, num_copied));
    engine.run();
    EXPECT_FALSE(engine.last_control->has_value());
    EXPECT_FALSE(is_given_back(engine));
  }
  engine.complete(transfer);
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::done);
  EXPECT_TRUE(is_given_back(engine));
  EXPECT_EQ(engine.device.num_premature_releases(), 0U);
}

// O129, blocks of 64 KiB, 128 of them: the copies of 32 have not begun, or are half done. Guards: sleep drains copies,
// in either direction, before memory goes; the device would not have let it go before.
TEST_P(scenario_control, o129_sleep_drains_copies_before_memory_goes) {
  auto large = options(129);
  large.model.bytes_per_token = 16 * 1024;
  test_engine engine(std::move(large));
  const auto pool = engine.pool_memory.view();
  EXPECT_EQ(pool.num_bytes, 129 * 64 * 1024U);
  const auto first = engine.submit(make_prompt(128), 1);
  engine.run();
  ASSERT_TRUE(engine.has_ended(first));
  const auto store = engine.stores().at(0);
  const auto source = engine.device_bytes(store);
  const auto too_early = engine.device.discard(pool);
  ASSERT_FALSE(too_early);
  EXPECT_EQ(too_early.error().code, EINVAL);
  expect_sleep_waits_for(engine, store);
  EXPECT_EQ(engine.tier_bytes(store), source);

  EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
  const auto second = engine.submit(make_prompt(128) + std::vector<token_id>{201}, 2);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  expect_sleep_waits_for(engine, engine.loads()[0]);
  EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
  engine.run_to_idle();
  engine.expect_reference(first);
  engine.expect_reference(second);
}

/// Suspending by one of two commands, and going on.
struct suspension {
  test_engine& engine;
  bool sleeps;

  void suspend() {
    const auto report = sleeps ? engine.carry_out(sleep_engine{1, pause_mode::keep, false, 60s})
                               : engine.carry_out(pause_engine{pause_mode::keep, false, false, 60s});
    EXPECT_EQ(report.outcome, control_outcome::done);
    EXPECT_EQ(engine.control(), sleeps ? control_state::sleeping : control_state::paused);
  }
  void resume() {
    EXPECT_EQ((sleeps ? engine.carry_out(wake_engine{}) : engine.carry_out(resume_engine{})).outcome,
              control_outcome::done);
    EXPECT_EQ(engine.control(), control_state::running);
  }
  /// A request is served now, or, while suspended, makes no step before the engine goes on.
  void work() {
    const auto is_suspended = engine.control() != control_state::running;
    const auto steps = engine.totals().steps;
    const auto id = engine.submit(make_prompt(9, first), 3);
    first += 20;
    engine.run_to_idle();
    if (is_suspended) {
      EXPECT_EQ(engine.totals().steps, steps);
      EXPECT_EQ(engine.request(id)->phase, request_phase::waiting);
      EXPECT_EQ(engine.request(id)->reason, waiting_reason::paused);
      resume();
      engine.run_to_idle();
    }
    engine.expect_reference(id);
  }

  token_id first = 1;
};

// O133. Guards: after any number of suspensions one resume makes the engine work, and a resume of what runs changes
// nothing; the engine is suspended exactly between the two.
TEST_P(scenario_control, o133_cycles_of_suspending_and_resuming) {
  for (const bool sleeps : {false, true}) {
    SCOPED_TRACE(sleeps ? "sleep" : "pause");
    test_engine engine(options(100));
    suspension cycle{engine, sleeps};
    cycle.suspend();
    cycle.resume();
    cycle.work();

    cycle.suspend();
    cycle.suspend();
    cycle.resume();
    cycle.work();

    cycle.resume();
    cycle.work();

    for (int i = 0; i < 3; ++i) {
      cycle.suspend();
      cycle.work();  // submitted while suspended
      cycle.work();
    }
  }
}

}  // namespace
}  // namespace sluice::testing
