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
  options.device_memory_fraction = 1.5;
  EXPECT_EQ(fault(), "invalid_argument: device_memory_fraction is 1.5, allowed is above 0 and at most 1");
  options = good;
  options.host_tier_bytes = 100;
  EXPECT_EQ(fault(), "invalid_argument: host_tier_bytes is 100, allowed is 0 or at least one chunk of 16384 bytes");
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
