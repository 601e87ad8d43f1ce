// SPDX-License-Identifier: Apache-2.0
//
// The host device through its public interface: order, bytes, limits, waits and ends. Times are bounded below only.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/gpu/host/copy_kernel.hpp>
#include <sluice/gpu/host/host_device.hpp>

namespace sluice::gpu {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// Blocks until everything enqueued on `on` has ended.
std::optional<error> reach(stream& on) {
  const auto reached = std::make_shared<std::promise<std::optional<error>>>();
  auto failure = reached->get_future();
  EXPECT_TRUE(on.call_when_reached([reached](const std::optional<error>& first) { reached->set_value(first); }));
  return failure.get();
}

void fill_random(memory_view range, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::generate_n(range.data, range.num_bytes, [&] { return std::byte(random()); });
}

copy_batch one_copy(memory_view to, memory_view from, copy_direction direction) {
  return {{{to.data, from.data, to.num_bytes}}, direction, 1};
}

/// Holds a stream's thread until told to go on.
class gate {
 public:
  explicit gate(stream& held) {
    EXPECT_TRUE(held.enqueue_function([opened = opened_.get_future().share()] { opened.wait(); }));
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

class host_device_test : public ::testing::Test {
 protected:
  std::unique_ptr<stream> make(const std::string& name) { return device_->make_stream(name).value(); }

  std::unique_ptr<device> device_ = host::make_device({.device_bytes = 64 * mib});
};

TEST_F(host_device_test, copies_are_byte_exact_in_both_directions) {
  for (const std::size_t num_bytes : {std::size_t{1}, 63UL, 4 * kib - 1, 4 * kib, 64 * kib + 17, 2 * mib + 5}) {
    SCOPED_TRACE(num_bytes);
    auto source = device_->allocate_host(num_bytes + 3).value();
    auto middle = device_->allocate_device(num_bytes + 1).value();
    auto target = device_->allocate_host(num_bytes + 64).value();
    fill_random(source.view(), 1);
    // Odd addresses, so that heads and tails of lines are copied too.
    const memory_view from{source.view().data + 3, num_bytes};
    const memory_view over{middle.view().data + 1, num_bytes};
    const memory_view to{target.view().data + 33, num_bytes};
    auto load = make("load");
    std::size_t num_good = 0;
    const auto note = [&](const copy_outcome& outcome) { num_good += outcome.failure ? 0 : outcome.num_good_copies; };
    ASSERT_TRUE(load->enqueue_copies(one_copy(over, from, copy_direction::to_device), note));
    ASSERT_TRUE(load->enqueue_copies(one_copy(to, over, copy_direction::to_host), note));
    EXPECT_FALSE(reach(*load));
    EXPECT_EQ(num_good, 2U);
    EXPECT_TRUE(std::equal(from.data, from.data + num_bytes, to.data));
    EXPECT_EQ(to.data[-1], std::byte{0});
    EXPECT_EQ(to.data[num_bytes], std::byte{0});
  }
}

TEST(copy_kernel_test, every_method_of_this_processor_copies_exactly_the_range) {
  for (const auto method : {host::copy_method::memcpy, host::copy_method::avx2, host::copy_method::avx512}) {
    if (method > host::best_copy_method()) continue;
    std::vector<std::byte> source(9 * kib), target(9 * kib), expected(9 * kib);
    fill_random({source.data(), source.size()}, 3);
    for (std::size_t offset = 0; offset < 130; offset += 13) {
      const std::size_t num_bytes = host::min_streaming_bytes + 7 * offset;
      std::ranges::fill(target, std::byte{1});
      std::ranges::fill(expected, std::byte{1});
      std::copy_n(source.begin() + 5, num_bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
      host::copy_bytes(target.data() + offset, source.data() + 5, num_bytes, method);
      EXPECT_EQ(target, expected) << "method " << static_cast<int>(method) << ", offset " << offset;
    }
  }
}

TEST_F(host_device_test, a_stream_keeps_the_order) {
  auto load = make("load");
  std::vector<int> order;
  gate held(*load);
  ASSERT_TRUE(load->enqueue_function([&] { order.push_back(1); }));
  ASSERT_TRUE(load->enqueue_copies({}, [&](const copy_outcome&) { order.push_back(2); }));
  ASSERT_TRUE(load->call_when_reached([&](const auto&) { order.push_back(3); }));
  ASSERT_TRUE(load->enqueue_function([&] { order.push_back(4); }));
  held.open();
  reach(*load);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST_F(host_device_test, callbacks_come_on_the_streams_own_thread) {
  auto load = make("load");
  auto store = make("store");
  std::thread::id function_thread, callback_thread, other_thread;
  ASSERT_TRUE(load->enqueue_function([&] { function_thread = std::this_thread::get_id(); }));
  ASSERT_TRUE(load->enqueue_copies({}, [&](const copy_outcome&) { callback_thread = std::this_thread::get_id(); }));
  ASSERT_TRUE(store->enqueue_function([&] { other_thread = std::this_thread::get_id(); }));
  reach(*load);
  reach(*store);
  EXPECT_EQ(function_thread, callback_thread);
  EXPECT_NE(function_thread, std::this_thread::get_id());
  EXPECT_NE(function_thread, other_thread);
}

TEST_F(host_device_test, a_wait_blocks_its_stream_only) {
  auto compute = make("compute");
  auto store = make("store");
  auto load = make("load");
  gate held(*compute);
  ASSERT_TRUE(device_->record_step(*compute, 7));
  std::atomic<bool> stored{false};
  ASSERT_TRUE(device_->wait_step(*store, 6)) << "step 7 includes step 6";
  ASSERT_TRUE(store->enqueue_function([&] { stored = true; }));
  reach(*load);
  EXPECT_FALSE(stored);
  held.open();
  reach(*store);
  EXPECT_TRUE(stored);
  ASSERT_TRUE(device_->wait_step(*load, 7));
  EXPECT_FALSE(reach(*load)) << "a reached step holds nobody";
}

TEST_F(host_device_test, step_rules_are_kept) {
  auto compute = make("compute");
  auto load = make("load");
  const status early = device_->wait_step(*load, 1);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().call, "wait_step");
  EXPECT_EQ(early.error().code, EINVAL);
  EXPECT_TRUE(device_->wait_step(*load, 0)) << "waits for nothing";
  ASSERT_TRUE(device_->record_step(*compute, 3));
  EXPECT_FALSE(device_->record_step(*compute, 3)) << "must rise";
  EXPECT_FALSE(device_->record_step(*load, 4)) << "one recording stream";
  EXPECT_FALSE(host::make_device({.device_bytes = mib})->wait_step(*load, 0)) << "another device's stream";
  compute.reset();
  EXPECT_TRUE(device_->record_step(*load, 4)) << "the old recording stream has ended";
}

TEST_F(host_device_test, an_exception_is_the_error_of_the_next_call_back_only) {
  auto compute = make("compute");
  bool ran_behind = false;
  ASSERT_TRUE(compute->enqueue_function([] { throw std::runtime_error("first"); }));
  ASSERT_TRUE(compute->enqueue_function([] { throw 2; }));
  ASSERT_TRUE(compute->enqueue_function([&] { ran_behind = true; }));
  const auto failure = reach(*compute);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->text, "first");
  EXPECT_EQ(to_string(*failure), "enqueue_function failed: first (code 125, 0 bytes)");
  EXPECT_TRUE(ran_behind);
  EXPECT_FALSE(reach(*compute));
}

TEST_F(host_device_test, bad_arguments_enqueue_nothing) {
  auto load = make("load");
  std::byte target{};
  int num_calls = 0;
  copy_batch null_source{{{&target, nullptr, 1}}, copy_direction::to_host, 1};
  EXPECT_FALSE(load->enqueue_copies(null_source, [&](const copy_outcome&) { ++num_calls; }));
  EXPECT_FALSE(load->enqueue_copies({}, {}));
  EXPECT_FALSE(load->enqueue_function({}));
  EXPECT_FALSE(load->call_when_reached({}));
  reach(*load);
  EXPECT_EQ(num_calls, 0);
}

TEST_F(host_device_test, destroying_a_stream_ends_all_it_holds_once) {
  auto limited = host::make_device({.load_gib_per_s = 0.001, .latency = 1h, .device_bytes = 64 * mib});
  auto source = limited->allocate_host(mib).value();
  auto target = limited->allocate_device(mib).value();
  fill_random(source.view(), 2);
  constexpr int num_batches = 20;
  std::vector<int> num_calls(num_batches);
  auto load = limited->make_stream("load").value();
  for (int position = 0; position < num_batches; ++position) {
    ASSERT_TRUE(load->enqueue_copies(one_copy(target.view(), source.view(), copy_direction::to_device),
                                     [&num_calls, position](const copy_outcome&) { ++num_calls[position]; }));
  }
  load.reset();  // Would take 20 hours if it kept to the limits.
  EXPECT_EQ(num_calls, std::vector<int>(num_batches, 1));
  EXPECT_TRUE(std::equal(source.view().data, source.view().data + mib, target.view().data));
}

TEST_F(host_device_test, streams_may_end_in_any_order_with_a_wait_pending) {
  for (const bool recorder_first : {true, false}) {
    auto device = host::make_device({.device_bytes = mib});
    auto compute = device->make_stream("compute").value();
    auto store = device->make_stream("store").value();
    std::atomic<int> num_calls{0};
    ASSERT_TRUE(compute->enqueue_function([] { std::this_thread::sleep_for(5ms); }));
    ASSERT_TRUE(device->record_step(*compute, 1));
    ASSERT_TRUE(device->wait_step(*store, 1));
    ASSERT_TRUE(store->enqueue_copies({}, [&](const copy_outcome&) { ++num_calls; }));
    if (recorder_first) compute.reset();
    store.reset();
    EXPECT_EQ(num_calls, 1);
  }
}

TEST_F(host_device_test, bandwidth_limits_hold_per_direction_and_are_shared_by_streams) {
  auto limited = host::make_device({.load_gib_per_s = 1.0 / 64, .device_bytes = mib});
  auto from = limited->allocate_host(mib).value();
  auto first_target = limited->allocate_device(mib / 2).value();
  auto second_target = limited->allocate_device(mib / 2).value();
  auto first = limited->make_stream("first").value();
  auto second = limited->make_stream("second").value();
  const auto ignore = [](const copy_outcome&) {};
  const auto begin = clock::now();
  ASSERT_TRUE(first->enqueue_copies(one_copy(first_target.view(), from.view(), copy_direction::to_device), ignore));
  ASSERT_TRUE(second->enqueue_copies(one_copy(second_target.view(), from.view(), copy_direction::to_device), ignore));
  reach(*first);
  reach(*second);
  // 1 MiB at 1/64 GiB/s takes 62.5 ms; each stream alone would take half of that.
  EXPECT_GE(clock::now() - begin, 62ms);
}

TEST_F(host_device_test, latency_counts_once_per_batch) {
  auto limited = host::make_device({.latency = 4ms, .device_bytes = mib});
  auto load = limited->make_stream("load").value();
  const auto begin = clock::now();
  for (const auto direction : {copy_direction::to_device, copy_direction::to_host, copy_direction::to_device})
    ASSERT_TRUE(load->enqueue_copies({{}, direction, 1}, [](const copy_outcome&) {}));
  reach(*load);
  EXPECT_GE(clock::now() - begin, 12ms);
}

TEST_F(host_device_test, memory_is_reserved_not_committed_and_absurd_sizes_fail) {
  EXPECT_TRUE(device_->allocate_host(std::size_t{1} << 38)) << "address space only";
  const auto absurd = device_->allocate_host(std::size_t{1} << 60);
  ASSERT_FALSE(absurd);
  EXPECT_EQ(absurd.error().call, "mmap");
  EXPECT_EQ(absurd.error().code, ENOMEM);
  EXPECT_EQ(absurd.error().num_bytes, std::size_t{1} << 60);
  EXPECT_FALSE(absurd.error().text.empty());
  EXPECT_FALSE(device_->allocate_host(SIZE_MAX));

  auto kept = device_->allocate_device(60 * mib);
  ASSERT_TRUE(kept);
  EXPECT_EQ(device_->info().free_device_bytes, 4 * mib);
  EXPECT_EQ(device_->allocate_device(5 * mib).error().code, ENOMEM);
  kept.value() = {};
  EXPECT_EQ(device_->info().free_device_bytes, 64 * mib);
  EXPECT_GT(host::make_device()->info().free_device_bytes, 0U);
}

TEST_F(host_device_test, random_batches_on_two_streams_move_every_byte) {
  constexpr std::size_t block_bytes = 16 * kib + 8;
  constexpr std::size_t num_blocks = 64;
  auto source = device_->allocate_host(num_blocks * block_bytes).value();
  auto middle = device_->allocate_device(num_blocks * block_bytes).value();
  auto target = device_->allocate_host(num_blocks * block_bytes).value();
  const auto at = [&](const auto& owner, std::size_t block) { return owner.view().data + block * block_bytes; };
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    fill_random(source.view(), seed);
    auto load = make("load");
    auto store = make("store");
    std::vector<std::size_t> order(num_blocks);
    for (std::size_t block = 0; block < num_blocks; ++block) order[block] = block;
    std::ranges::shuffle(order, random);
    std::atomic<std::size_t> num_good{0};
    const auto note = [&](const copy_outcome& outcome) { num_good += outcome.num_good_copies; };
    std::uint64_t step = 0;
    for (std::size_t done = 0; done < num_blocks;) {
      // The load stream records, the store stream waits for it and brings the same blocks back.
      copy_batch down{{}, copy_direction::to_device, ++step};
      copy_batch up{{}, copy_direction::to_host, step};
      for (std::size_t left = 1 + random() % 8; left > 0 && done < num_blocks; --left, ++done) {
        down.copies.push_back({at(middle, order[done]), at(source, order[done]), block_bytes});
        up.copies.push_back({at(target, order[done]), at(middle, order[done]), block_bytes});
      }
      ASSERT_TRUE(load->enqueue_copies(down, note));
      ASSERT_TRUE(device_->record_step(*load, seed * 1000 + step));
      ASSERT_TRUE(device_->wait_step(*store, seed * 1000 + step));
      ASSERT_TRUE(store->enqueue_copies(up, note));
    }
    reach(*store);
    EXPECT_EQ(num_good, 2 * num_blocks);
    EXPECT_TRUE(std::equal(at(source, 0), at(source, num_blocks), at(target, 0)));
  }
}

}  // namespace
}  // namespace sluice::gpu
