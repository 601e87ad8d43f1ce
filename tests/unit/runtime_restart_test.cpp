// SPDX-License-Identifier: Apache-2.0
//
// What clients see when a load or store actor throws: nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include <support/live_runtime.hpp>

namespace sluice::testing {
namespace {

/// How many more calls that enqueue copies on a stream end well before one throws; negative: all do.
struct throw_countdown {
  std::atomic<int> load{-1}, store{-1};

  std::atomic<int>& of(const std::string& stream) { return stream == "load" ? load : store; }
};

class throwing_stream final : public gpu::stream {
 public:
  throwing_stream(std::shared_ptr<throw_countdown> countdown, std::unique_ptr<gpu::stream> made)
      : countdown_(std::move(countdown)), host_(std::move(made)) {}

  gpu::stream& host() { return *host_; }

  const std::string& name() const override { return host_->name(); }
  gpu::status enqueue_copies(gpu::copy_batch batch, gpu::copy_callback done) override {
    auto& left = countdown_->of(name());
    if (left >= 0 && left-- == 0) throw std::runtime_error("no memory for one more copy");
    return host_->enqueue_copies(std::move(batch), std::move(done));
  }
  gpu::status enqueue_function(std::function<void()> function) override {
    return host_->enqueue_function(std::move(function));
  }
  gpu::status call_when_reached(gpu::reached_callback callback) override {
    return host_->call_when_reached(std::move(callback));
  }

 private:
  std::shared_ptr<throw_countdown> countdown_;
  std::unique_ptr<gpu::stream> host_;
};

/// The host device, until an enqueueing of copies is to throw.
class throwing_device final : public gpu::device {
 public:
  explicit throwing_device(std::shared_ptr<throw_countdown> countdown) : countdown_(std::move(countdown)) {}

  gpu::device_info info() const override { return host_->info(); }
  tl::expected<gpu::device_memory, gpu::error> allocate_device(std::size_t num_bytes) override {
    return host_->allocate_device(num_bytes);
  }
  tl::expected<gpu::host_memory, gpu::error> allocate_host(std::size_t num_bytes) override {
    return host_->allocate_host(num_bytes);
  }
  tl::expected<std::unique_ptr<gpu::stream>, gpu::error> make_stream(std::string name) override {
    return host_->make_stream(std::move(name)).map([this](std::unique_ptr<gpu::stream> made) {
      return std::unique_ptr<gpu::stream>(std::make_unique<throwing_stream>(countdown_, std::move(made)));
    });
  }
  gpu::status discard(gpu::memory_view memory) override { return host_->discard(memory); }
  gpu::status restore(gpu::memory_view memory) override { return host_->restore(memory); }
  gpu::status record_step(gpu::stream& on, std::uint64_t step) override {
    return host_->record_step(static_cast<throwing_stream&>(on).host(), step);
  }
  gpu::status wait_step(gpu::stream& on, std::uint64_t step) override {
    return host_->wait_step(static_cast<throwing_stream&>(on).host(), step);
  }

 private:
  std::shared_ptr<throw_countdown> countdown_;
  std::unique_ptr<gpu::device> host_ = make_host_device();
};

struct runtime_restart : ::testing::Test {
  runtime_restart() {
    live_options options;
    options.engine.host_tier_bytes = 4ULL << 20;
    engine = runtime::start(options.engine, std::make_unique<throwing_device>(countdown), make_tiny_model({}),
                            make_byte_tokenizer())
                 .value();
  }

  std::vector<token_id> run(const std::string& text) {
    const auto client = submit_to(*engine, greedy_request(text, 40));
    EXPECT_EQ(client->wait_for_end().reason, finish_reason::length);
    EXPECT_EQ(client->num_ends(), 1);
    return client->tokens();
  }

  void forget_device() {
    wait_until_idle(*engine);
    reset_options device_only;
    EXPECT_TRUE(reset_and_wait(*engine, device_only).success);
  }

  std::shared_ptr<throw_countdown> countdown = std::make_shared<throw_countdown>();
  std::unique_ptr<runtime> engine;
  const std::string prompt = "It was a dark and stormy night; the rain fell in torrents, except at intervals";
};

// ACTOR-07. Guards: an exception while copies are submitted ends the actor only; its successor settles what is
// doubtful, every client gets its tokens, later stores and loads are done again, and stop is clean.
TEST_F(runtime_restart, transfer_actors_that_throw_are_replaced) {
  const auto expected = run(prompt);
  forget_device();
  countdown->load = 0;
  EXPECT_EQ(run(prompt), expected);
  countdown->store = 0;
  EXPECT_EQ(run(prompt + " when it was checked"), run(prompt + " when it was checked"));
  forget_device();
  const auto loads = wait_until_idle(*engine).totals.loads_ok;
  EXPECT_EQ(run(prompt), expected);
  const auto end = wait_until_idle(*engine);
  EXPECT_EQ(end.totals.loads_ok, loads + 1);
  EXPECT_EQ(end.totals.load_actor_restarts, 1U);
  EXPECT_EQ(end.totals.store_actor_restarts, 1U);
  EXPECT_EQ(end.totals.invariant_violations, 0U);
  EXPECT_EQ(end.blocks.held, 0U);
  EXPECT_EQ(end.slots.pinned, 0U);
  EXPECT_EQ(engine->state(), health::serving);
  EXPECT_TRUE(engine->stop(std::chrono::seconds{5}));
}

// Guards: a store actor that throws every time ends the engine with the reason, in place of being replaced for ever.
TEST_F(runtime_restart, an_actor_that_cannot_live_ends_the_engine) {
  for (int i = 0; i < 12 && engine->state() == health::serving; ++i) {
    countdown->store = 0;
    const auto client = std::make_shared<waiting_client>();
    if (!engine->submit(greedy_request(prompt + std::to_string(i), 20), client)) break;
    client->wait_for_end();
    for (int wait = 0; wait < 2000 && countdown->store == 0; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  for (int wait = 0; wait < 2000 && engine->state() == health::serving; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  EXPECT_EQ(engine->state(), health::failed);
  EXPECT_EQ(engine->failure().code, errc::engine_failed);
  EXPECT_EQ(engine->failure().message,
            "the store actor ended: too often, the last time because: no memory for one more copy");
}

}  // namespace
}  // namespace sluice::testing
