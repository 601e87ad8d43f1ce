// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of moving blocks between the device's tensors and a tier: exactly what is mapped changes.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/transfer/load_actor.hpp>
#include <sluice/actors/transfer/store_actor.hpp>
#include <sluice/gpu/host/host_device.hpp>
#include <sluice/gpu/manual/manual_device.hpp>

#include <support/deterministic_system.hpp>

namespace sluice {
namespace {

using bytes = std::vector<std::byte>;
using std::chrono::steady_clock;

/// Bytes of a page, by KV group and by tensor of the group. A block is one page of each tensor of its group.
using page_sizes = std::vector<std::vector<std::size_t>>;

/// The device's tensors and a tier's slots, and what must stand there after a transfer.
class worker_memory {
 public:
  worker_memory(gpu::device& device, page_sizes pages, std::uint32_t num_blocks, std::uint32_t num_slots,
                std::uint32_t blocks_per_chunk)
      : pages_(std::move(pages)),
        bytes_per_block_(std::accumulate(pages_[0].begin(), pages_[0].end(), std::size_t{0})) {
    pool_ = device.allocate_device(bytes_per_block_ * num_blocks * pages_.size()).value();
    arena_ = device.allocate_host(bytes_per_block_ * blocks_per_chunk * num_slots).value();
    memory = {{num_blocks, {}}, arena_.view(), bytes_per_block_, blocks_per_chunk};
    auto* base = pool_.view().data;
    for (const auto& group : pages_) {
      auto& tensors = memory.device.segments.emplace_back();
      for (const auto page : group) {
        tensors.push_back({base, page, page});
        base += page * num_blocks;
      }
    }
  }

  /// Fills everything with new random bytes; from now on it is to be as this job leaves it.
  void fill_and_expect(const transfer_job& job, transfer_direction direction) {
    for (auto view : {pool_.view(), arena_.view()})
      std::generate_n(view.data, view.num_bytes, [this] { return static_cast<std::byte>(random_()); });
    expected_device_ = image(pool_.view());
    expected_tier_ = image(arena_.view());
    for (const auto& copy : job.copies)
      for (std::uint32_t i = 0; i < copy.num_blocks; ++i) {
        const auto block_in_tier = copy.slot.value * memory.blocks_per_chunk + copy.first_block_in_chunk + i;
        auto* in_tier = expected_tier_.data() + block_in_tier * bytes_per_block_;
        for (const auto& tensor : memory.device.segments[copy.group.value]) {
          const auto at = (tensor.base - pool_.view().data) +
                          static_cast<std::ptrdiff_t>((copy.block.value + i) * tensor.bytes_per_block);
          auto* on_device = expected_device_.data() + at;
          const bool is_load = direction == transfer_direction::load;
          std::copy_n(is_load ? in_tier : on_device, tensor.bytes_per_block, is_load ? on_device : in_tier);
          in_tier += tensor.bytes_per_block;
        }
      }
  }

  /// Every byte of both sides, mapped or not, is as expected.
  void check() const {
    EXPECT_TRUE(image(pool_.view()) == expected_device_);
    EXPECT_TRUE(image(arena_.view()) == expected_tier_);
  }

  transfer_memory memory;

 private:
  template <class View>
  static bytes image(View view) {
    return {view.data, view.data + view.num_bytes};
  }

  page_sizes pages_;
  std::size_t bytes_per_block_;
  std::mt19937_64 random_{1};
  gpu::device_memory pool_;
  gpu::host_memory arena_;
  bytes expected_device_, expected_tier_;
};

std::size_t num_bytes(const transfer_memory& memory, const transfer_job& job, transfer_direction direction) {
  std::size_t sum = 0;
  for (const auto& copy : make_physical_copies(memory, job, direction).batch.copies) sum += copy.num_bytes;
  return sum;
}

/// Carries a job out on the host device, whose streams have threads.
transfer_outcome run_on_host(gpu::device& device, const transfer_memory& memory, const transfer_job& job,
                             transfer_direction direction) {
  std::promise<void> ended;
  const auto stream = device.make_stream("copies").value();
  transfer_queue queue({&device, stream.get()}, memory, direction, [&] { ended.set_value(); });
  const auto start = steady_clock::now();
  queue.submit({job}, {0});
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds{10}), std::future_status::ready);
  const auto outcomes = queue.take_ended();
  EXPECT_EQ(outcomes.size(), 1U);
  const auto outcome = outcomes.empty() ? transfer_outcome{} : outcomes[0];
  EXPECT_GT(outcome.duration.count(), 0);
  EXPECT_LE(outcome.duration, steady_clock::now() - start);
  return outcome;
}

/// Expects that the job succeeds, moves so many blocks and touches nothing else, in both directions one after another.
void expect_exact_transfers(const page_sizes& pages, std::uint32_t blocks_per_chunk, const transfer_job& job,
                            std::size_t num_moved_bytes) {
  const auto device = gpu::host::make_device({.device_bytes = 64 << 20});
  worker_memory memory(*device, pages, 64, 256, blocks_per_chunk);
  for (auto direction : {transfer_direction::store, transfer_direction::load}) {
    SCOPED_TRACE(static_cast<int>(direction));
    EXPECT_EQ(num_bytes(memory.memory, job, direction), num_moved_bytes);
    memory.fill_and_expect(job, direction);
    const auto outcome = run_on_host(*device, memory.memory, job, direction);
    EXPECT_EQ(outcome.id, job.id);
    EXPECT_EQ(outcome.result, transfer_result::ok);
    EXPECT_EQ(outcome.num_good_copies, job.copies.size());
    memory.check();
  }
}

/// Three random chunks whose blocks lie anywhere, less the first F - 1 blocks of the first chunk.
transfer_job random_job(std::uint32_t blocks_per_chunk) {
  std::mt19937_64 random(blocks_per_chunk);
  std::vector<std::uint32_t> blocks(63), slots(256);
  std::iota(blocks.begin(), blocks.end(), 1U);
  std::iota(slots.begin(), slots.end(), 0U);
  std::shuffle(blocks.begin(), blocks.end(), random);
  std::shuffle(slots.begin(), slots.end(), random);
  transfer_job job{{1}, {}};
  for (std::uint32_t at = blocks_per_chunk - 1; at < 3 * blocks_per_chunk; ++at)
    job.copies.push_back({{slots[at / blocks_per_chunk]}, at % blocks_per_chunk, {blocks[at]}, 1, {}});
  return job;
}

/// Group 0: two whole chunks. Group 1: nothing. Group 2: two chunks, less F - 1 blocks at both ends.
transfer_job three_group_job(std::uint32_t factor) {
  return {{1},
          {{{7}, 0, {10}, factor, {0}},
           {{200}, 0, {20}, factor, {0}},
           {{9}, factor - 1, {30}, 1, {2}},
           {{3}, 0, {40}, 1, {2}}}};
}

const page_sizes three_groups{{512, 1536}, {1024, 1024}, {768, 1280}};

// Guards: O127, of three groups with tensors of their own, one of which moves nothing and one of which starts inside a
// chunk, exactly the mapped pages change. A block of any group has 2048 bytes.
TEST(transfer_worker, o127_three_groups_one_empty_one_inside_a_chunk) {
  for (const std::uint32_t factor : {1U, 3U}) {
    SCOPED_TRACE(factor);
    expect_exact_transfers(three_groups, factor, three_group_job(factor), (2 * factor + 2) * 2048U);
  }
}

// Guards: O128, of one group with four tensors exactly the mapped pages change, on the device or in the slots.
TEST(transfer_worker, o128_one_group_both_ways) {
  for (const std::size_t page : {512U, 1024U})
    for (const std::uint32_t factor : {1U, 3U}) {
      SCOPED_TRACE(::testing::Message() << page << " bytes, factor " << factor);
      const auto job = random_job(factor);
      ASSERT_EQ(job.copies.size(), factor == 1 ? 3U : 7U);
      expect_exact_transfers({{page, page, page, page}}, factor, job, job.copies.size() * 4 * page);
    }
}

/// The actors over the manual device; the test is the scheduler.
struct transfer_actors : ::testing::TestWithParam<std::uint32_t> {
  transfer_actors() {
    loads = system.spawn<load_actor, load_actor_state>(scheduler.handle(), lease(load_stream), memory.memory);
    stores = system.spawn<store_actor, store_actor_state>(scheduler.handle(), lease(store_stream), memory.memory);
  }
  ~transfer_actors() override { system.end_all(); }

  stream_lease lease(const std::unique_ptr<gpu::stream>& stream) { return {&device, stream.get()}; }

  /// The copies end, and nothing but what they were to change has changed; neither had happened before.
  void expect_settled(const transfer_job& job, transfer_direction direction) {
    memory.fill_and_expect({{}, {}}, direction);
    system.run_all();
    memory.check();
    EXPECT_TRUE(scheduler.received<transfers_settled>().empty());
    memory.fill_and_expect(job, direction);
    ASSERT_TRUE(device.complete_copies(job.id.value));
    memory.check();
    system.run_all();
    ASSERT_EQ(scheduler.received<transfers_settled>().size(), 1U);
    const auto settled = scheduler.take<transfers_settled>();
    EXPECT_EQ(settled.direction, direction);
    ASSERT_EQ(settled.outcomes.size(), 1U);
    EXPECT_EQ(settled.outcomes[0].id, job.id);
    EXPECT_EQ(settled.outcomes[0].result, transfer_result::ok);
    EXPECT_EQ(settled.outcomes[0].num_good_copies, job.copies.size());
  }

  gpu::manual::manual_device device;
  worker_memory memory{device, three_groups, 64, 256, GetParam()};
  std::unique_ptr<gpu::stream> load_stream = device.make_stream("load").value();
  std::unique_ptr<gpu::stream> store_stream = device.make_stream("store").value();
  testing::deterministic_system system{
      [](caf::actor_system_config& config) { compat::register_types<caf::id_block::sluice>(config); }};
  testing::probe<scheduler_actor> scheduler{system};
  load_actor loads;
  store_actor stores;
};

INSTANTIATE_TEST_SUITE_P(factor, transfer_actors, ::testing::Values(1U, 3U), ::testing::PrintToStringParamName());

// Guards: O127, O128, a load and a store report their own end, with direction and result, once the bytes are there.
TEST_P(transfer_actors, o127_o128_report_direction_and_result) {
  auto job = three_group_job(GetParam());
  compat::anon_mail(submit_stores{{1}, {job}, {0}}).send(stores);
  expect_settled(job, transfer_direction::store);
  job.id = {2};
  compat::anon_mail(submit_loads{{1}, {job}, {0}}).send(loads);
  expect_settled(job, transfer_direction::load);
}

// A step without tokens was dispatched and waits for the enqueueing of the step before, and the next boundary opens.
// Guards: what is staged for one step goes when that step is submitted, and not before.
TEST_P(transfer_actors, loads_of_two_steps_are_staged_at_once) {
  auto first = three_group_job(GetParam()), second = first, third = first;
  first.id = {1};
  second.id = {2};
  third.id = {3};
  for (const auto& [step, job] : {std::pair{5U, first}, {6U, second}, {7U, third}})
    compat::anon_mail(stage_loads{{step}, {job}}).send(loads);
  compat::anon_mail(unstage_loads{{7}}).send(loads);
  for (const std::uint64_t step : {5, 6, 7, 5}) {
    compat::anon_mail(submit_loads{{step}, {}, {0}}).send(loads);
    system.run_all();
    const auto tags = step == 5 && device.outstanding_tags().size() < 2 ? std::vector<std::uint64_t>{1}
                                                                        : std::vector<std::uint64_t>{1, 2};
    EXPECT_EQ(device.outstanding_tags(), tags) << "after step " << step;
  }
  device.run_everything();
}

}  // namespace
}  // namespace sluice
