// SPDX-License-Identifier: Apache-2.0
//
// Pause, sleep and their opposites through the facade.
#include <gtest/gtest.h>

#include <map>

#include <sluice/runtime/metric_families.hpp>

#include <support/live_control.hpp>
#include <support/logging_device.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

// Guards: a value out of range is refused with a sentence, and the engine does not hear of it.
TEST(runtime_control, bad_options_are_named) {
  auto engine = start_live().value();
  const auto level = sleep(*engine, {3, pause_mode::abort, true, milliseconds{1}});
  EXPECT_EQ(level.outcome, control_outcome::failed);
  EXPECT_EQ(level.message, "level is 3, allowed is 1 or 2");
  const auto timeout = pause(*engine, {pause_mode::keep, true, true, milliseconds{-1}});
  EXPECT_EQ(timeout.outcome, control_outcome::failed);
  EXPECT_EQ(timeout.message, "timeout in ms is -1, allowed is 0 to 86400000");
  EXPECT_FALSE(engine->is_paused());
  EXPECT_FALSE(engine->is_sleeping());
}

// Guards: every command is answered, in any order and more than once; afterwards requests are served.
TEST(runtime_control, commands_are_answered) {
  auto engine = start_live().value();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(pause(*engine, {}).outcome, control_outcome::done);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(resume(*engine).outcome, control_outcome::done);
  EXPECT_FALSE(engine->is_paused());
  EXPECT_EQ(sleep(*engine, {}).outcome, control_outcome::done);
  EXPECT_EQ(wake(*engine).outcome, control_outcome::done);
  EXPECT_FALSE(engine->is_sleeping());
  EXPECT_EQ(submit_to(*engine, greedy_request("Once", 5))->wait_for_end().reason, finish_reason::length);
}

// O129 on the host device. Guards: the copies of the stores in flight have ended when sleep gives their memory back.
TEST(runtime_control, o129_sleep_drains_copies_before_memory_goes) {
  const auto log = std::make_shared<destruction_log>();
  auto device = std::make_unique<logging_device>(log, false, host_device_options{0, 0, milliseconds{300}});
  const live_options options;
  auto engine = runtime::start(options.engine, std::move(device), make_tiny_model(), make_byte_tokenizer()).value();
  submit_to(*engine, greedy_request(std::string(100, 'a'), 60))->wait_for_end();
  const auto asleep = sleep(*engine, {});
  EXPECT_EQ(asleep.outcome, control_outcome::done);
  ASSERT_EQ(asleep.caches.size(), 2U);
  EXPECT_GT(asleep.caches[0].num_stores_in_flight, 0U);
  EXPECT_EQ(*log, destruction_log{"discard under 0"});
  EXPECT_EQ(wake(*engine).outcome, control_outcome::done);
}

// Guards: a command that nobody carries out must not look as if it had been.
TEST(runtime_control, after_stop_commands_have_failed) {
  auto engine = start_live().value();
  EXPECT_TRUE(engine->stop(milliseconds{100}));
  const auto caller = std::this_thread::get_id();
  engine->pause({}, [&](const control_report& report) {
    EXPECT_EQ(report.outcome, control_outcome::failed);
    EXPECT_EQ(report.message, "the runtime has stopped");
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_EQ(wake(*engine).outcome, control_outcome::failed);
}

// Guards: every request ends, and no more than once.
TEST(runtime_control, abort_all_ends_every_request) {
  live_options options;
  options.model.min_step = milliseconds{2};
  auto engine = start_live(options).value();
  std::vector<std::shared_ptr<waiting_client>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(submit_to(*engine, greedy_request("Once", 2000)));
  ASSERT_TRUE(clients.back()->wait_for_tokens(1));
  engine->abort_all();
  for (const auto& client : clients) {
    EXPECT_EQ(client->wait_for_end().reason, finish_reason::abort);
    EXPECT_EQ(client->num_ends(), 1);
  }
  EXPECT_EQ(wait_until_idle(*engine).blocks.held, 0U);
}

// O146; ours are labelled by tier, and misses are what was looked up and not hit. Guards: the host tier's counters are
// declared before anything has happened, and the default policy is lru.
TEST(runtime_control, o146_host_counters_are_declared) {
  EXPECT_EQ(runtime_options{}.eviction_policy, eviction_policy_kind::lru);
  std::map<std::string, int> num_host_series;
  for (const auto& family : make_metric_families({}))
    for (const auto& metric : family.metric)
      for (const auto& label : metric.label)
        num_host_series[family.name] += label.name == "tier" && label.value == "host";
  for (const auto* name : {"sluice_prefix_queries_tokens_total", "sluice_prefix_hits_tokens_total",
                           "sluice_evictions_total"})
    EXPECT_EQ(num_host_series[name], 1) << name;
}

// Guards: each total is under its own label.
TEST(runtime_control, metrics_know_every_cause_and_scope) {
  engine_numbers numbers;
  numbers.totals.preemptions_priority = 3;
  numbers.totals.preemptions_pause = 4;
  numbers.totals.resets_tiers_success = 5;
  numbers.totals.resets_tiers_refused = 6;
  std::map<std::string, double> values;
  for (const auto& family : make_metric_families(numbers))
    for (const auto& metric : family.metric) {
      auto key = family.name;
      for (const auto& label : metric.label) key += " " + label.value;
      values[key] = metric.counter.value;
    }
  EXPECT_EQ(values["sluice_preemptions_total priority"], 3);
  EXPECT_EQ(values["sluice_preemptions_total pause"], 4);
  EXPECT_EQ(values["sluice_resets_total tiers success"], 5);
  EXPECT_EQ(values["sluice_resets_total tiers refused"], 6);
}

}  // namespace
}  // namespace sluice::testing
