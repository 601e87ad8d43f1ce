// SPDX-License-Identifier: Apache-2.0
//
// The end of a runtime: who hears of it, what is freed, in which order, and what must not be.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include <sluice/gpu/manual/manual_device.hpp>

#include <support/live_runtime.hpp>
#include <support/logging_device.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

/// A runtime on a device whose copies, and compute if wanted, do not end.
struct stuck_runtime {
  gpu::manual::manual_device* device;  ///< the engine's, which is left behind
  std::unique_ptr<runtime> engine;

  explicit stuck_runtime(bool computes) {
    auto manual = std::make_unique<gpu::manual::manual_device>();
    device = manual.get();
    if (computes) device->set_inline("compute");
    live_options options;
    options.engine.host_tier_bytes = 4ULL << 20;
    engine = runtime::start(options.engine, std::move(manual), make_tiny_model(), make_byte_tokenizer()).value();
  }
};

// Guards: whoever reads the error knows which transfers to look for; their memory is left alone.
TEST(runtime_stop, names_the_transfers_that_had_not_settled) {
  stuck_runtime stuck(true);
  submit_to(*stuck.engine, greedy_request(std::string(40, 'a'), 1))->wait_for_end();
  std::string ids;
  for (const auto& transfer : snapshot_of(*stuck.engine).transfers)
    ids += (ids.empty() ? "" : ", ") + std::to_string(transfer.id.value);
  ASSERT_FALSE(ids.empty());
  const auto stopped = stuck.engine->stop(milliseconds{0});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::transfers_unsettled);
  EXPECT_EQ(stopped.error().message, "stores " + ids + " had not settled");
  EXPECT_GT(stuck.device->run_everything(), 0U);
  EXPECT_EQ(stuck.device->num_premature_releases(), 0U);
}

// Guards: with no transfer in flight the error says what it is instead, and the request in the step ends all the same.
TEST(runtime_stop, says_that_a_step_had_not_ended) {
  stuck_runtime stuck(false);
  const auto client = submit_to(*stuck.engine, greedy_request("Once", 5));
  const auto stopped = stuck.engine->stop(milliseconds{0});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::transfers_unsettled);
  EXPECT_EQ(stopped.error().message, "a step had not ended");
  EXPECT_EQ(client->num_ends(), 1);
  EXPECT_EQ(client->wait_for_end().failure.code, errc::shutting_down);
}

// Guards: work on the streams uses the model, and the model uses memory of the device.
TEST(runtime_stop, destroys_streams_then_the_model_then_memory) {
  const auto log = std::make_shared<destruction_log>();
  const live_options options;
  auto engine = runtime::start(options.engine, std::make_unique<logging_device>(log),
                               std::make_unique<logging_model>(log), make_byte_tokenizer())
                    .value();
  submit_to(*engine, greedy_request("Once upon a time", 20))->wait_for_end();
  EXPECT_TRUE(engine->stop(milliseconds{1000}));
  EXPECT_EQ(*log, (destruction_log{"compute", "load", "store", "model", "tier", "pool", "device"}));
}

// Guards: the same order when the engine could not be made.
TEST(runtime_stop, a_failed_start_destroys_the_model_before_memory) {
  const auto log = std::make_shared<destruction_log>();
  live_options options;
  EXPECT_FALSE(runtime::start(options.engine, std::make_unique<logging_device>(log, true),
                              std::make_unique<logging_model>(log), make_byte_tokenizer()));
  EXPECT_EQ(*log, (destruction_log{"model", "tier", "pool", "device"}));
}

class throwing_sink final : public request_sink {
 public:
  explicit throwing_sink(bool only_at_the_end) : only_at_the_end_(only_at_the_end) {}
  void delta(const token_delta&) override {
    if (!only_at_the_end_) throw std::runtime_error("the sink is broken");
  }
  void finished(const request_summary& summary) override {
    code = summary.failure.code;
    ++num_ends;
    if (only_at_the_end_) throw std::runtime_error("the sink is broken");
  }

  std::atomic<errc> code = errc::none;
  std::atomic<int> num_ends = 0;

 private:
  bool only_at_the_end_;
};

// Guards: a sink that throws costs its own request, neither the place of another nor blocks.
TEST(runtime_stop, a_sink_that_throws_gives_its_place_back) {
  live_options options;
  options.engine.max_num_seqs = 1;
  options.engine.max_queued_requests = 0;
  options.model.min_step = milliseconds{2};
  auto engine = start_live(options).value();
  for (const bool only_at_the_end : {false, true}) {
    const auto sink = std::make_shared<throwing_sink>(only_at_the_end);
    ASSERT_TRUE(engine->submit(greedy_request("Once", only_at_the_end ? 3 : 4000), sink));
    for (int i = 0; i < 10'000 && sink->num_ends == 0; ++i) std::this_thread::sleep_for(milliseconds{1});
    EXPECT_EQ(sink->num_ends, 1);
    EXPECT_EQ(sink->code, only_at_the_end ? errc::none : errc::engine_failed);
    EXPECT_EQ(wait_until_idle(*engine).blocks.held, 0U);
    const auto client = submit_to(*engine, greedy_request("Once", 3));
    EXPECT_EQ(client->wait_for_end().reason, finish_reason::length);
    wait_until_idle(*engine);
  }
  EXPECT_EQ(engine->state(), health::serving);
  EXPECT_TRUE(engine->stop(milliseconds{1000}));
}

void submit_until_stopped(runtime& engine, std::vector<std::shared_ptr<waiting_client>>& accepted) {
  for (;;) {
    const auto client = std::make_shared<waiting_client>();
    const auto id = engine.submit(greedy_request("Once", 50), client);
    if (id) {
      accepted.push_back(client);
      continue;
    }
    EXPECT_EQ(client->num_ends(), 0);
    if (id.error().code == errc::shutting_down) return;
    std::this_thread::sleep_for(milliseconds{1});
  }
}

// Guards: submissions that race with stop are either refused, without a call of the sink, or get one terminal event.
TEST(runtime_stop, races_with_submissions) {
  for (int round = 0; round < 5; ++round) {
    auto engine = start_live().value();
    std::vector<std::vector<std::shared_ptr<waiting_client>>> accepted(4);
    std::vector<std::thread> clients;
    for (auto& mine : accepted) clients.emplace_back([&engine, &mine] { submit_until_stopped(*engine, mine); });
    std::this_thread::sleep_for(milliseconds{5 * round});
    EXPECT_TRUE(engine->stop(milliseconds{round}));
    for (auto& client : clients) client.join();
    for (const auto& mine : accepted)
      for (const auto& client : mine) ASSERT_EQ(client->num_ends(), 1);
  }
}

}  // namespace
}  // namespace sluice::testing
