// SPDX-License-Identifier: Apache-2.0
//
// The manual device through its public interface: nothing happens before the test says so.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/gpu/manual/manual_device.hpp>

namespace sluice::gpu {
namespace {

using manual::bad_copy;
using manual::manual_device;
using manual::operation;
using manual::operation_kind;

constexpr std::size_t block_bytes = 256;

std::size_t count(memory_view range, std::byte value) {
  return static_cast<std::size_t>(std::count(range.data, range.data + range.num_bytes, value));
}

class manual_device_test : public ::testing::Test {
 protected:
  std::unique_ptr<stream> make(const std::string& name) { return device_.make_stream(name).value(); }

  memory_view device_block(std::size_t position) const { return block(device_memory_.view(), position); }
  memory_view host_block(std::size_t position) const { return block(host_memory_.view(), position); }

  static memory_view block(memory_view whole, std::size_t position) {
    return {whole.data + position * block_bytes, block_bytes};
  }

  static void fill(memory_view range, int value) { std::fill_n(range.data, range.num_bytes, std::byte(value)); }

  /// Copies host blocks first, first + 1, ... to the device blocks of the same positions.
  copy_batch to_device(std::uint64_t tag, std::size_t first, std::size_t num_blocks) const {
    copy_batch batch{{}, copy_direction::to_device, tag};
    for (std::size_t position = first; position < first + num_blocks; ++position)
      batch.copies.push_back({device_block(position).data, host_block(position).data, block_bytes});
    return batch;
  }

  copy_callback note_outcome() {
    return [this](const copy_outcome& outcome) { outcomes_.push_back(outcome); };
  }

  reached_callback note_reached() {
    return [this](const std::optional<error>& failure) { reached_.push_back(failure); };
  }

  manual_device device_;
  device_memory device_memory_ = device_.allocate_device(16 * block_bytes).value();
  host_memory host_memory_ = device_.allocate_host(16 * block_bytes).value();
  std::vector<copy_outcome> outcomes_;
  std::vector<std::optional<error>> reached_;
};

TEST_F(manual_device_test, fresh_memory_is_poisoned) {
  EXPECT_EQ(count(device_memory_.view(), manual::device_poison), 16 * block_bytes);
  EXPECT_EQ(count(host_memory_.view(), manual::host_poison), 16 * block_bytes);
}

TEST_F(manual_device_test, nothing_runs_before_the_test_says_so) {
  auto load = make("load");
  fill(host_block(0), 7);
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  ASSERT_TRUE(load->enqueue_function([] {}));
  ASSERT_TRUE(device_.record_step(*load, 4));
  ASSERT_TRUE(device_.wait_step(*load, 3));
  ASSERT_TRUE(load->call_when_reached(note_reached()));
  const std::vector<operation> queue = {{operation_kind::copies, 1},
                                        {operation_kind::function, 0},
                                        {operation_kind::record, 4},
                                        {operation_kind::wait, 3},
                                        {operation_kind::callback, 0}};
  EXPECT_EQ(device_.outstanding("load"), queue);
  EXPECT_EQ(count(device_block(0), manual::device_poison), block_bytes);
  EXPECT_TRUE(outcomes_.empty());
  EXPECT_FALSE(device_.idle());

  for (std::size_t left = queue.size(); left > 0; --left) {
    EXPECT_EQ(device_.outstanding("load").size(), left);
    ASSERT_TRUE(device_.step("load"));
  }
  EXPECT_FALSE(device_.step("load"));
  EXPECT_EQ(count(device_block(0), std::byte{7}), block_bytes);
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].num_good_copies, 1U);
  EXPECT_FALSE(outcomes_[0].failure);
  ASSERT_EQ(reached_.size(), 1U);
  EXPECT_FALSE(reached_[0]);
  EXPECT_TRUE(device_.idle());
}

TEST_F(manual_device_test, copies_take_the_bytes_of_the_moment_they_run) {
  auto load = make("load");
  auto store = make("store");
  fill(host_block(0), 1);
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  fill(host_block(0), 2);
  ASSERT_TRUE(device_.complete_copies(1));
  EXPECT_EQ(count(device_block(0), std::byte{2}), block_bytes);

  copy_batch back{{{host_block(5).data, device_block(0).data, block_bytes}}, copy_direction::to_host, 2};
  ASSERT_TRUE(store->enqueue_copies(back, note_outcome()));
  ASSERT_TRUE(device_.complete_copies(2));
  EXPECT_EQ(count(host_block(5), std::byte{2}), block_bytes);
}

TEST_F(manual_device_test, a_wait_is_not_runnable_before_its_step_is_reached) {
  auto compute = make("compute");
  auto store = make("store");
  ASSERT_TRUE(device_.record_step(*compute, 5));
  ASSERT_TRUE(device_.wait_step(*store, 5));
  ASSERT_TRUE(store->enqueue_copies(to_device(9, 0, 1), note_outcome()));

  const status blocked = device_.step("store");
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().text, "stream 'store' waits for step 5");
  EXPECT_FALSE(device_.complete_copies(9));
  EXPECT_EQ(device_.run_all("store"), 0U);
  EXPECT_EQ(device_.runnable_streams(), std::vector<std::string>{"compute"});
  EXPECT_EQ(device_.outstanding("store").size(), 2U);

  ASSERT_TRUE(device_.step("compute"));
  ASSERT_TRUE(device_.complete_copies(9));
  EXPECT_EQ(outcomes_.size(), 1U);
}

TEST_F(manual_device_test, a_refused_completion_runs_nothing) {
  auto compute = make("compute");
  auto store = make("store");
  ASSERT_TRUE(device_.record_step(*compute, 1));
  ASSERT_TRUE(store->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  ASSERT_TRUE(device_.wait_step(*store, 1));
  ASSERT_TRUE(store->enqueue_copies(to_device(2, 1, 1), note_outcome()));
  EXPECT_FALSE(device_.complete_copies(2));
  EXPECT_FALSE(device_.complete_copies(3));
  EXPECT_FALSE(device_.fail_copies(1, 2));
  EXPECT_EQ(device_.outstanding("store").size(), 3U);
  EXPECT_TRUE(outcomes_.empty());
}

TEST_F(manual_device_test, step_rules_are_kept) {
  auto compute = make("compute");
  auto load = make("load");
  manual_device other;
  EXPECT_FALSE(device_.wait_step(*load, 1)) << "not recorded yet";
  EXPECT_TRUE(device_.wait_step(*load, 0)) << "waits for nothing";
  EXPECT_TRUE(device_.outstanding("load").empty());
  ASSERT_TRUE(device_.record_step(*compute, 4));
  EXPECT_FALSE(device_.record_step(*compute, 4)) << "must rise";
  EXPECT_FALSE(device_.record_step(*load, 5)) << "one recording stream";
  EXPECT_TRUE(device_.wait_step(*load, 3)) << "step 4 includes step 3";
  EXPECT_FALSE(device_.wait_step(*load, 5));
  EXPECT_FALSE(other.wait_step(*load, 0)) << "another device's stream";
  EXPECT_FALSE(device_.step("load"));
  ASSERT_TRUE(device_.step("compute"));
  EXPECT_TRUE(device_.step("load"));
}

TEST_F(manual_device_test, a_new_stream_may_record_after_the_old_one_ended) {
  auto compute = make("compute");
  ASSERT_TRUE(device_.record_step(*compute, 4));
  compute.reset();
  compute = make("compute");
  EXPECT_FALSE(device_.record_step(*compute, 4));
  EXPECT_TRUE(device_.record_step(*compute, 5));
}

TEST_F(manual_device_test, a_failed_batch_performs_its_good_copies_only) {
  auto load = make("load");
  fill(host_memory_.view(), 3);
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 4), note_outcome()));
  ASSERT_TRUE(load->call_when_reached(note_reached()));
  ASSERT_TRUE(device_.fail_copies(1, 2));
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].num_good_copies, 2U);
  ASSERT_TRUE(outcomes_[0].failure);
  EXPECT_EQ(outcomes_[0].failure->code, EIO);
  EXPECT_EQ(outcomes_[0].failure->num_bytes, block_bytes);
  EXPECT_EQ(count(device_block(1), std::byte{3}), block_bytes);
  EXPECT_EQ(count(device_block(2), std::byte{3}), 0U);
  ASSERT_TRUE(device_.step("load"));
  ASSERT_TRUE(reached_.at(0)) << "the failure is also an error of the stream";
}

TEST_F(manual_device_test, a_torn_copy_is_half_written) {
  auto load = make("load");
  fill(host_memory_.view(), 3);
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 2), note_outcome()));
  ASSERT_TRUE(device_.fail_copies(1, 0, bad_copy::torn));
  EXPECT_EQ(outcomes_.at(0).num_good_copies, 0U);
  EXPECT_EQ(count(device_block(0), std::byte{3}), block_bytes / 2);
  EXPECT_EQ(count(device_block(1), std::byte{3}), 0U);
}

TEST_F(manual_device_test, a_started_batch_has_moved_its_leading_copies) {
  auto load = make("load");
  fill(host_memory_.view(), 3);
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 3), note_outcome()));
  ASSERT_TRUE(device_.start_copies(1, 1));
  EXPECT_EQ(count(device_block(0), std::byte{3}), block_bytes);
  EXPECT_EQ(count(device_block(1), std::byte{3}), 0U);
  EXPECT_EQ(device_.outstanding_writes().size(), 3U) << "touched until the callback";
  fill(host_memory_.view(), 4);
  ASSERT_TRUE(device_.complete_copies(1));
  EXPECT_EQ(count(device_block(0), std::byte{3}), block_bytes) << "not repeated";
  EXPECT_EQ(count(device_block(2), std::byte{4}), block_bytes);
  EXPECT_EQ(outcomes_.size(), 1U);
}

TEST_F(manual_device_test, outstanding_accesses_name_range_tag_and_stream) {
  auto load = make("load");
  ASSERT_TRUE(load->enqueue_copies(to_device(8, 2, 1), note_outcome()));
  const auto reads = device_.outstanding_reads();
  const auto writes = device_.outstanding_writes();
  ASSERT_EQ(reads.size(), 1U);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(reads[0].data, host_block(2).data);
  EXPECT_EQ(writes[0].data, device_block(2).data);
  EXPECT_EQ(writes[0].tag, 8U);
  EXPECT_EQ(writes[0].stream_name, "load");
  EXPECT_TRUE(writes[0].overlaps(device_memory_.view()));
  EXPECT_FALSE(writes[0].overlaps(device_block(1))) << "half-open: the end of 1 is the begin of 2";
  EXPECT_FALSE(writes[0].overlaps(device_block(3)));
  EXPECT_EQ(device_.outstanding_tags(), std::vector<std::uint64_t>{8});
  ASSERT_TRUE(device_.complete_copies(8));
  EXPECT_TRUE(device_.outstanding_reads().empty());
}

TEST_F(manual_device_test, an_inline_stream_calls_back_inside_the_enqueue_call) {
  device_.set_inline("compute");
  auto compute = make("compute");
  int order = 0;
  ASSERT_TRUE(compute->enqueue_function([&] {
    EXPECT_TRUE(compute->enqueue_function([&] { order = order * 10 + 2; }));
    order = order * 10 + 1;
  }));
  EXPECT_EQ(order, 12) << "what a function enqueues runs after it";
  ASSERT_TRUE(compute->call_when_reached(note_reached()));
  EXPECT_EQ(reached_.size(), 1U);
  ASSERT_TRUE(compute->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  EXPECT_EQ(outcomes_.size(), 1U);
  EXPECT_TRUE(device_.idle());
}

TEST_F(manual_device_test, an_inline_stream_goes_on_when_its_step_is_reached) {
  auto compute = make("compute");
  auto load = make("load");
  device_.set_inline("load");
  ASSERT_TRUE(device_.record_step(*compute, 1));
  ASSERT_TRUE(device_.wait_step(*load, 1));
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  EXPECT_TRUE(outcomes_.empty());
  ASSERT_TRUE(device_.step("compute"));
  EXPECT_EQ(outcomes_.size(), 1U);
}

TEST_F(manual_device_test, an_exception_is_the_error_of_the_next_call_back_only) {
  auto compute = make("compute");
  ASSERT_TRUE(compute->enqueue_function([] { throw std::runtime_error("first"); }));
  ASSERT_TRUE(compute->enqueue_function([] { throw 2; }));
  ASSERT_TRUE(compute->call_when_reached(note_reached()));
  ASSERT_TRUE(compute->call_when_reached(note_reached()));
  EXPECT_EQ(device_.run_all("compute"), 4U);
  ASSERT_EQ(reached_.size(), 2U);
  ASSERT_TRUE(reached_[0]);
  EXPECT_EQ(reached_[0]->text, "first");
  EXPECT_FALSE(reached_[1]);
}

TEST_F(manual_device_test, bad_arguments_enqueue_nothing) {
  auto load = make("load");
  copy_batch null_source{{{device_block(0).data, nullptr, 1}}, copy_direction::to_device, 1};
  EXPECT_FALSE(load->enqueue_copies(null_source, note_outcome()));
  EXPECT_FALSE(load->enqueue_copies(to_device(1, 0, 1), {}));
  EXPECT_FALSE(load->enqueue_function({}));
  EXPECT_FALSE(load->call_when_reached({}));
  EXPECT_TRUE(device_.idle());
  EXPECT_TRUE(load->enqueue_copies({}, note_outcome())) << "an empty batch is good";
  EXPECT_EQ(device_.run_everything(), 1U);
  EXPECT_EQ(outcomes_.at(0).num_good_copies, 0U);
}

TEST_F(manual_device_test, a_refusal_is_returned_once) {
  auto load = make("load");
  EXPECT_FALSE(device_.refuse_next_copies("store", {}));
  ASSERT_TRUE(device_.refuse_next_copies("load", error{"copy", EAGAIN, "busy", 0}));
  const status refused = load->enqueue_copies(to_device(1, 0, 1), note_outcome());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EAGAIN);
  EXPECT_TRUE(device_.idle());
  EXPECT_TRUE(load->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  EXPECT_FALSE(device_.refuse_next_call("store", {}));
  ASSERT_TRUE(device_.refuse_next_call("load", error{"launch", EBUSY, "busy", 0}));
  EXPECT_EQ(load->call_when_reached([](const auto&) {}).error().code, EBUSY);
  EXPECT_TRUE(load->call_when_reached([](const auto&) {}));
}

TEST_F(manual_device_test, destroying_a_stream_runs_all_it_holds_and_what_that_waits_for) {
  auto compute = make("compute");
  auto store = make("store");
  int num_runs = 0;
  ASSERT_TRUE(compute->enqueue_function([&] { ++num_runs; }));
  ASSERT_TRUE(device_.record_step(*compute, 1));
  ASSERT_TRUE(compute->enqueue_function([&] { ++num_runs; }));
  ASSERT_TRUE(device_.wait_step(*store, 1));
  ASSERT_TRUE(store->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  store.reset();
  EXPECT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(num_runs, 1) << "the recording stream ran up to the step";
  compute.reset();
  EXPECT_EQ(num_runs, 2);
  EXPECT_TRUE(device_.stream_names().empty());
}

TEST_F(manual_device_test, allocation_beyond_the_limit_fails) {
  manual_device small({.device_bytes = 1000, .host_bytes = 10});
  auto kept = small.allocate_device(600);
  ASSERT_TRUE(kept);
  EXPECT_EQ(small.info().free_device_bytes, 400U);
  const auto absurd = small.allocate_device(401);
  ASSERT_FALSE(absurd);
  EXPECT_EQ(absurd.error().call, "allocate_device");
  EXPECT_EQ(absurd.error().code, ENOMEM);
  EXPECT_EQ(absurd.error().num_bytes, 401U);
  EXPECT_FALSE(small.allocate_host(std::size_t{1} << 60));
  kept.value() = {};
  EXPECT_EQ(small.info().free_device_bytes, 1000U);
  EXPECT_TRUE(small.allocate_device(0));
}

TEST_F(manual_device_test, memory_given_back_under_a_copy_is_counted_and_kept) {
  auto load = make("load");
  ASSERT_TRUE(load->enqueue_copies(to_device(1, 0, 1), note_outcome()));
  host_memory_ = {};
  EXPECT_EQ(device_.num_premature_releases(), 1U);
  ASSERT_TRUE(device_.complete_copies(1));
  device_memory_ = {};
  EXPECT_EQ(device_.num_premature_releases(), 1U);
}

TEST(manual_device_random_test, every_callback_comes_once_and_in_order) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    manual_device device;
    auto compute = device.make_stream("compute").value();
    auto load = device.make_stream("load").value();
    std::vector<std::uint64_t> ended;
    std::uint64_t num_steps = 0;
    std::uint64_t num_batches = 0;
    for (int turn = 0; turn < 200; ++turn) {
      switch (random() % 5) {
        case 0: ASSERT_TRUE(device.record_step(*compute, ++num_steps)); break;
        case 1: ASSERT_TRUE(device.wait_step(*load, random() % (num_steps + 1))); break;
        case 2: {
          const std::uint64_t tag = ++num_batches;
          const auto note = [&ended, tag](const copy_outcome&) { ended.push_back(tag); };
          ASSERT_TRUE(load->enqueue_copies({{}, copy_direction::to_host, tag}, note));
          break;
        }
        case 3: {
          const auto names = device.runnable_streams();
          if (!names.empty()) {
            ASSERT_TRUE(device.step(names[random() % names.size()]));
          }
          break;
        }
        default: {
          const auto tags = device.outstanding_tags();
          if (!tags.empty()) (void)device.complete_copies(tags[random() % tags.size()]);
        }
      }
    }
    device.run_everything();
    EXPECT_TRUE(device.idle());
    ASSERT_EQ(ended.size(), num_batches);
    EXPECT_TRUE(std::ranges::is_sorted(ended));
  }
}

}  // namespace
}  // namespace sluice::gpu
