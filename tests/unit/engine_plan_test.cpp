// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sluice/runtime/engine_plan.hpp>

#include <support/live_runtime.hpp>

namespace sluice::testing {
namespace {

constexpr std::uint64_t gib = 1ULL << 30;

struct engine_plan_test : ::testing::Test {
  std::unique_ptr<gpu::device> device = make_host_device();
  std::unique_ptr<model_executor> model = make_tiny_model();
  runtime_options options;

  engine_plan_test() { options.num_device_blocks = 320; }
  auto plan(std::uint64_t available = 8 * gib) { return plan_engine(options, *device, *model, available); }
  std::string fault() {
    const auto planned = plan();
    return planned ? "none" : std::string(to_string(planned.error().code)) + ": " + planned.error().message;
  }
};

// Guards: what is resolved is what is used; 320 blocks give 319 usable ones.
TEST_F(engine_plan_test, resolves_what_was_left_open) {
  options.blocks_per_chunk = 2;
  options.host_tier_bytes = gib;
  const auto planned = plan();
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->scheduler.max_model_len, 319U * 16);
  EXPECT_EQ(planned->scheduler.kv.bytes_per_block, 16384U);
  EXPECT_EQ(planned->pool_bytes, 320U * 16384U);
  EXPECT_EQ(planned->scheduler.num_host_slots, gib / (2 * 16384));
}

// Guards: each bad option gives one message that says which, what was given and what is allowed.
TEST_F(engine_plan_test, names_the_bad_option) {
  const auto good = options;
  options.block_size = 0;
  EXPECT_EQ(fault(), "invalid_argument: block_size is 0, allowed is 1 to 1024");
  options = good;
  options.blocks_per_chunk = 65;
  EXPECT_EQ(fault(), "invalid_argument: blocks_per_chunk is 65, allowed is 1 to 64");
  options = good;
  options.num_device_blocks = 1;
  EXPECT_EQ(fault(), "invalid_argument: num_device_blocks is 1, allowed is 2 to 4294967294");
  options = good;
  options.max_model_len = 6000;
  EXPECT_EQ(fault(), "invalid_argument: max_model_len is 6000, allowed is 1 to 5104");
  options = good;
  options.max_num_seqs = 0;
  EXPECT_EQ(fault(), "invalid_argument: max_num_seqs is 0, allowed is 1 to 4294967294");
  options = good;
  options.offload = offload_scope::preempted;
  options.preemption_offload = false;
  EXPECT_EQ(fault(), "invalid_argument: offload is preempted and preemption_offload is false: nothing would ever be "
                     "stored; allowed is one of the two");
  options.device_memory_fraction = 1.5;
  EXPECT_EQ(fault(), "invalid_argument: device_memory_fraction is 1.5, allowed is above 0 and at most 1");
  options = good;
  options.host_tier_bytes = 100;
  EXPECT_EQ(fault(), "invalid_argument: host_tier_bytes is 100, allowed is 0 or at least one chunk of 16384 bytes");
}

// Guards: a timeout that would never come, or at once, is refused.
TEST_F(engine_plan_test, bounds_every_timeout) {
  const auto good = options;
  options.transfer_timeout = std::chrono::milliseconds{0};
  EXPECT_EQ(fault(), "invalid_argument: transfer_timeout in ms is 0, allowed is 1 to 86400000");
  options = good;
  options.lookup_timeout = std::chrono::hours{25};
  EXPECT_EQ(fault(), "invalid_argument: lookup_timeout in ms is 90000000, allowed is 1 to 86400000");
  options = good;
  options.flush_timeout = std::chrono::milliseconds{-3};
  EXPECT_EQ(fault(), "invalid_argument: flush_timeout in ms is -3, allowed is 1 to 86400000");
  options = good;
  options.num_tracked_sightings = 0;
  EXPECT_EQ(fault(), "invalid_argument: num_tracked_sightings is 0, allowed is 1 to 16777216");
}

// Scenario O008.
TEST_F(engine_plan_test, o008_a_negative_recompute_budget_is_refused) {
  options.recompute_budget = -1;
  EXPECT_EQ(fault(), "invalid_argument: recompute_budget is -1, allowed is 0 to 4294967294");
  const auto started = runtime::start(options, make_host_device(), make_tiny_model(), make_byte_tokenizer());
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("recompute_budget is -1"), std::string::npos);
  options.recompute_budget = 3;
  EXPECT_EQ(plan()->scheduler.recompute_budget, 3U);
}

// Guards: every choice arrives at the scheduler.
TEST_F(engine_plan_test, hands_the_choices_on) {
  options.async_scheduling = false;
  options.scheduling = scheduling_policy::priority;
  options.offload = offload_scope::preempted;
  options.storing = store_policy::whole_request;
  options.offload_prompt_only = true;
  options.store_threshold = 2;
  options.num_tracked_sightings = 100;
  options.transfer_timeout = std::chrono::milliseconds{5};
  options.lookup_timeout = std::chrono::milliseconds{6};
  const auto planned = plan();
  ASSERT_TRUE(planned);
  const auto& config = planned->scheduler;
  EXPECT_FALSE(config.async_scheduling);
  EXPECT_EQ(config.order, scheduling_policy::priority);
  EXPECT_TRUE(config.preemption_offload);
  EXPECT_EQ(config.offload, offload_scope::preempted);
  EXPECT_EQ(config.storing, store_policy::whole_request);
  EXPECT_TRUE(config.offload_prompt_only);
  EXPECT_EQ(config.store_threshold, 2U);
  EXPECT_EQ(config.num_tracked_sightings, 100U);
  EXPECT_EQ(config.transfer_timeout, std::chrono::milliseconds{5});
  EXPECT_EQ(config.lookup_timeout, std::chrono::milliseconds{6});
  options.offload = offload_scope::all;
  options.preemption_offload = false;
  EXPECT_FALSE(plan().value().scheduler.preemption_offload);
}

using kind = kv_group_spec::kind;

/// The tiny model with a cache layout of the test's choice.
class grouped_model final : public model_executor {
 public:
  explicit grouped_model(std::vector<kv_group_spec> groups) : groups_(std::move(groups)) {}
  model_info info() const override { return tiny_->info(); }
  kv_spec kv(std::uint32_t) const override { return {groups_, 4096}; }
  void bind(const kv_memory& memory) override { segments = memory.segments; }
  gpu::status enqueue(const step_batch&, const std::vector<sampled_token>&, gpu::stream&,
                      std::vector<sampled_token>&) override {
    return {};
  }

  static inline std::vector<std::vector<kv_segment>> segments;

 private:
  std::vector<kv_group_spec> groups_;
  std::unique_ptr<model_executor> tiny_ = make_tiny_model();
};

struct engine_plan_groups : engine_plan_test {
  void use(std::vector<kv_group_spec> groups) { model = std::make_unique<grouped_model>(std::move(groups)); }
};

// Guards: every group takes blocks of the one pool; a window takes those of the window, its ragged edge and one step.
TEST_F(engine_plan_groups, all_groups_share_the_pool) {
  use({{kind::full_attention, 0, 16}, {kind::sliding_window, 64, 16}});
  options.max_num_batched_tokens = 32;
  options.num_device_blocks = 41;
  options.async_scheduling = false;
  const auto planned = plan();
  ASSERT_TRUE(planned);
  const auto& config = planned->scheduler;
  EXPECT_EQ(config.num_blocks_at_most(0), 0U);
  EXPECT_EQ(config.num_blocks_at_most(1), 2U);
  EXPECT_EQ(config.num_blocks_at_most(112), 14U);
  EXPECT_EQ(config.num_blocks_at_most(1000), 63U + 4 + 1 + 2);
  EXPECT_EQ(config.max_model_len, 33U * 16) << "40 blocks less the window's 7";
  options.max_model_len = 529;
  EXPECT_EQ(fault(), "invalid_argument: max_model_len is 529, allowed is 1 to 528");
  options.async_scheduling = true;  // a second step may be in flight
  EXPECT_EQ(fault(), "invalid_argument: max_model_len is 529, allowed is 1 to 496");
}

// Guards: windows alone never fill the pool, so the model's own limit holds.
TEST_F(engine_plan_groups, windows_alone_are_bounded_by_the_model) {
  use({{kind::sliding_window, 10, 4}});
  options.max_num_batched_tokens = 8;
  options.async_scheduling = false;
  options.num_device_blocks = 7;
  EXPECT_EQ(plan()->scheduler.max_model_len, model->info().max_model_len);
  options.num_device_blocks = 6;
  EXPECT_EQ(plan()->scheduler.max_model_len, 20U);
}

TEST_F(engine_plan_groups, bad_layouts_are_named) {
  use({});
  EXPECT_EQ(fault(), "invalid_argument: the model's number of KV groups is 0, allowed is 1 to 64");
  use({{kind::full_attention, 0, 16}, {kind::full_attention, 0, 2000}});
  EXPECT_EQ(fault(), "invalid_argument: the model's KV group 1: block_size is 2000, allowed is 1 to 1024");
  use({{kind::sliding_window, 0, 16}});
  EXPECT_EQ(fault(), "invalid_argument: the model's KV group 0: window_tokens is 0, allowed is 1 to 4294967294");
  use({{kind::full_attention, 0, 16}, {kind::full_attention, 0, 16}});
  options.num_device_blocks = 2;
  EXPECT_EQ(fault(), "insufficient_memory: the pool has 2 blocks, a request of one token takes 2 besides the null block");
}

// Guards: the model sees one list of segments per group, all over the same pool.
TEST_F(engine_plan_groups, each_group_gets_its_segments) {
  const std::vector<kv_group_spec> groups{{kind::full_attention, 0, 16}, {kind::sliding_window, 64, 32}};
  const auto engine =
      runtime::start(options, make_host_device(), std::make_unique<grouped_model>(groups), make_byte_tokenizer());
  ASSERT_TRUE(engine);
  ASSERT_EQ(grouped_model::segments.size(), 2U);
  for (const auto& segments : grouped_model::segments) {
    ASSERT_EQ(segments.size(), 1U);
    EXPECT_EQ(segments[0].base, grouped_model::segments[0][0].base);
    EXPECT_EQ(segments[0].stride_bytes, 4096U);
    EXPECT_EQ(segments[0].bytes_per_block, 4096U);
  }
}

// Guards: a tier that the machine cannot hold is refused at start, with both numbers.
TEST_F(engine_plan_test, refuses_a_tier_that_does_not_fit) {
  options.host_tier_bytes = 4 * gib;
  const auto planned = plan(3 * gib);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, errc::insufficient_memory);
  EXPECT_EQ(planned.error().message, "the host tier asks for 4.00 GiB of memory, available are 3.00 GiB");
}

// Guards: without a tier nothing is reserved for one.
TEST_F(engine_plan_test, zero_turns_offloading_off) {
  options.host_tier_bytes = 0;
  const auto planned = plan(0);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->scheduler.num_host_slots, 0U);
  EXPECT_EQ(planned->tier_bytes, 0U);
}

}  // namespace
}  // namespace sluice::testing
