// SPDX-License-Identifier: Apache-2.0
//
// What clients see when the model or an actor fails.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include <sluice/gpu/manual/manual_device.hpp>

#include <support/live_runtime.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

enum class fault : std::uint8_t {
  none,
  throws_in_handler,
  throws_when_told,  ///< blocks its actor until it is told throws_in_handler
  throws_on_stream,
  returns_error,
  samples_too_little,
};

/// The tiny model, until it is told to fail.
class faulty_model final : public model_executor {
 public:
  explicit faulty_model(std::shared_ptr<std::atomic<fault>> next) : next_(std::move(next)) {}
  ~faulty_model() override { ++num_destroyed; }

  static inline std::atomic<int> num_destroyed = 0;

  model_info info() const override { return tiny_->info(); }
  kv_spec kv(std::uint32_t block_size) const override { return tiny_->kv(block_size); }
  void bind(const kv_memory& memory) override { tiny_->bind(memory); }
  gpu::status enqueue(const step_batch& batch, const std::vector<sampled_token>& previous, gpu::stream& compute,
                      std::vector<sampled_token>& sampled) override {
    switch (next_->exchange(fault::none)) {
      case fault::none: return tiny_->enqueue(batch, previous, compute, sampled);
      case fault::throws_when_told:
        while (next_->load() != fault::throws_in_handler) std::this_thread::sleep_for(milliseconds{1});
        [[fallthrough]];
      case fault::throws_in_handler: throw std::runtime_error("the model is broken");
      case fault::throws_on_stream:
        return compute.enqueue_function([] { throw std::runtime_error("the kernel is broken"); });
      case fault::returns_error: return tl::unexpected(gpu::error{"launch", 1, "out of luck", 0});
      case fault::samples_too_little: return compute.enqueue_function([] {});
    }
    return {};
  }

 private:
  std::unique_ptr<model_executor> tiny_ = make_tiny_model({0, milliseconds{2}});
  std::shared_ptr<std::atomic<fault>> next_;
};

struct runtime_failure : ::testing::Test {
  std::shared_ptr<std::atomic<fault>> next = std::make_shared<std::atomic<fault>>(fault::none);
  std::unique_ptr<runtime> engine;

  runtime_failure() { restart({}, make_host_device()); }

  void restart(const live_options& options, std::unique_ptr<gpu::device> device) {
    engine.reset();
    engine = runtime::start(options.engine, std::move(device), std::make_unique<faulty_model>(next),
                            make_byte_tokenizer())
                 .value();
  }

  static live_options small_tier() {
    live_options options;
    options.engine.host_tier_bytes = 4ULL << 20;
    return options;
  }

  /// A request that is decoding when the fault strikes.
  request_summary fail_a_request(fault what) {
    const auto client = submit_to(*engine, greedy_request("Once upon a time", 1000));
    EXPECT_TRUE(client->wait_for_tokens(3));
    next->store(what);
    auto end = client->wait_for_end();
    EXPECT_EQ(client->num_ends(), 1);
    return end;
  }

  void expect_that_others_are_served() {
    EXPECT_EQ(engine->state(), health::serving);
    EXPECT_EQ(submit_to(*engine, greedy_request("Hello", 5))->wait_for_end().reason, finish_reason::length);
    EXPECT_EQ(wait_until_idle(*engine).blocks.held, 0U);
  }
};

// Guards: a step that fails ends the requests in it, with the reason, and nobody else.
TEST_F(runtime_failure, an_exception_on_the_stream_fails_the_step) {
  const auto end = fail_a_request(fault::throws_on_stream);
  EXPECT_EQ(end.reason, finish_reason::error);
  EXPECT_EQ(end.failure.code, errc::model_failed);
  EXPECT_NE(end.failure.message.find("the kernel is broken"), std::string::npos) << end.failure.message;
  expect_that_others_are_served();
}

TEST_F(runtime_failure, an_error_of_the_model_fails_the_step) {
  const auto end = fail_a_request(fault::returns_error);
  EXPECT_EQ(end.failure.code, errc::device_failed);
  EXPECT_NE(end.failure.message.find("out of luck"), std::string::npos) << end.failure.message;
  expect_that_others_are_served();
}

// Guards: a model that breaks its contract is found out at once, not some steps later.
TEST_F(runtime_failure, a_missing_token_fails_the_step) {
  const auto end = fail_a_request(fault::samples_too_little);
  EXPECT_EQ(end.failure.code, errc::model_failed);
  EXPECT_EQ(end.failure.message, "the model sampled 0 tokens, 1 were asked for");
  expect_that_others_are_served();
}

// Guards: the death of an actor ends the engine with one clear error: every client hears of it, nothing hangs.
TEST_F(runtime_failure, the_death_of_an_actor_ends_the_engine) {
  const auto waiting = submit_to(*engine, greedy_request("another", 4000));
  const auto end = fail_a_request(fault::throws_in_handler);
  EXPECT_EQ(end.reason, finish_reason::error);
  EXPECT_EQ(end.failure.code, errc::engine_failed);
  EXPECT_EQ(end.failure.message, "the executor ended: the model is broken");
  EXPECT_EQ(waiting->wait_for_end().failure.code, errc::engine_failed);
  EXPECT_EQ(engine->state(), health::failed);
  EXPECT_EQ(engine->failure().message, "the executor ended: the model is broken");
  const auto refused = engine->submit(greedy_request("x", 1), std::make_shared<waiting_client>());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::engine_failed);
  const auto stopped = engine->stop(milliseconds{100});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::engine_failed);
}

// Guards: a question that the scheduler holds for the end of a step is answered when that step's actor dies.
TEST_F(runtime_failure, questions_end_with_the_engine) {
  live_options options;
  options.engine.num_actor_threads = 2;
  restart(options, make_host_device());
  const auto client = submit_to(*engine, greedy_request("Once upon a time", 1000));
  ASSERT_TRUE(client->wait_for_tokens(3));
  next->store(fault::throws_when_told);
  while (next->load() != fault::none) std::this_thread::sleep_for(milliseconds{1});
  std::promise<reset_report> queued;
  engine->reset_prefix_cache({}, [&](const reset_report& report) { queued.set_value(report); });
  snapshot_of(*engine);  // the reset has arrived before it
  auto answer = queued.get_future();
  EXPECT_EQ(answer.wait_for(milliseconds{0}), std::future_status::timeout);
  next->store(fault::throws_in_handler);
  ASSERT_EQ(answer.wait_for(std::chrono::seconds{20}), std::future_status::ready);
  EXPECT_TRUE(answer.get().caches.empty());
  EXPECT_TRUE(reset_and_wait(*engine, {}).caches.empty()) << "later ones too";
  EXPECT_EQ(client->wait_for_end().failure.code, errc::engine_failed);
}

// Guards: the memory under a copy that does not end is not given back, also when nobody is left to ask about it.
TEST_F(runtime_failure, stop_leaves_memory_under_a_stuck_copy_alone) {
  auto held = std::make_unique<gpu::manual::manual_device>();
  auto* device = held.get();
  device->set_inline("compute");
  restart(small_tier(), std::move(held));
  fail_a_request(fault::throws_in_handler);
  const auto num_models = faulty_model::num_destroyed.load();
  ASSERT_FALSE(device->outstanding("store").empty());
  const auto stopped = engine->stop(milliseconds{0});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::engine_failed);
  EXPECT_EQ(faulty_model::num_destroyed, num_models);
  EXPECT_GT(device->run_everything(), 0U) << "the device lives on";
  EXPECT_EQ(device->num_premature_releases(), 0U);
}

// Guards: copies that do end are waited for, and everything is freed after them.
TEST_F(runtime_failure, stop_waits_for_copies_of_a_failed_engine) {
  restart(small_tier(), make_host_device({0, 0, milliseconds{200}}));
  fail_a_request(fault::throws_in_handler);
  const auto num_models = faulty_model::num_destroyed.load();
  EXPECT_FALSE(engine->stop(milliseconds{0}));
  EXPECT_EQ(faulty_model::num_destroyed, num_models + 1);
}

}  // namespace
}  // namespace sluice::testing
