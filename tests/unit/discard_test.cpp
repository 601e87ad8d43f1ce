// SPDX-License-Identifier: Apache-2.0
//
// Device memory that is given back while its addresses stay: the contract on every backend, then each one's own part.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <sluice/gpu/host/host_device.hpp>
#include <sluice/gpu/manual/manual_device.hpp>

namespace sluice::gpu {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t device_bytes = 8 * mib;

std::size_t count(memory_view range, std::byte value) {
  return static_cast<std::size_t>(std::count(range.data, range.data + range.num_bytes, value));
}

struct backend {
  const char* name;
  std::unique_ptr<device> (*make)();
};

class discard_test : public ::testing::TestWithParam<backend> {
 protected:
  std::size_t free_bytes() const { return device_->info().free_device_bytes; }

  void expect_refused(const status& answer, const std::string& call, const std::string& text, int code = EINVAL) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().call, call);
    EXPECT_EQ(answer.error().code, code);
    EXPECT_NE(answer.error().text.find(text), std::string::npos) << answer.error().text;
  }

  std::unique_ptr<device> device_ = GetParam().make();
};

TEST_P(discard_test, counts_as_free_and_is_usable_again) {
  auto memory = device_->allocate_device(3 * mib + 5).value();
  const auto range = memory.view();
  std::fill_n(range.data, range.num_bytes, std::byte{7});
  const auto before = free_bytes();
  ASSERT_TRUE(device_->discard(range));
  EXPECT_EQ(free_bytes(), before + range.num_bytes);
  ASSERT_TRUE(device_->restore(range));
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(count(range, std::byte{7}), 0U) << "nobody may rely on what was there";
  std::fill_n(range.data, range.num_bytes, std::byte{8});
  EXPECT_EQ(count(range, std::byte{8}), range.num_bytes);
  ASSERT_TRUE(device_->discard(range));
  ASSERT_TRUE(device_->restore(range));
}

TEST_P(discard_test, is_refused_twice_and_restore_without_it) {
  auto memory = device_->allocate_device(mib).value();
  expect_refused(device_->restore(memory.view()), "restore", "not discarded");
  ASSERT_TRUE(device_->discard(memory.view()));
  expect_refused(device_->discard(memory.view()), "discard", "discarded already");
  EXPECT_EQ(free_bytes(), device_bytes);
  ASSERT_TRUE(device_->restore(memory.view()));
}

TEST_P(discard_test, wants_a_whole_living_allocation_of_device_memory) {
  auto memory = device_->allocate_device(mib).value();
  auto host = device_->allocate_host(mib).value();
  auto [data, num_bytes] = memory.view();
  for (const memory_view part :
       {memory_view{data, num_bytes - 1}, memory_view{data + 1, num_bytes - 1}, host.view(), memory_view{}}) {
    expect_refused(device_->discard(part), "discard", "not a whole allocation");
    expect_refused(device_->restore(part), "restore", "not a whole allocation");
  }
  memory = device_memory();
  expect_refused(device_->discard({data, num_bytes}), "discard", "not a whole allocation");
  EXPECT_EQ(free_bytes(), device_bytes);
}

TEST_P(discard_test, restore_fails_while_others_have_the_memory) {
  auto memory = device_->allocate_device(5 * mib).value();
  ASSERT_TRUE(device_->discard(memory.view()));
  auto other = device_->allocate_device(4 * mib).value();
  expect_refused(device_->restore(memory.view()), "restore", "", ENOMEM);
  EXPECT_EQ(free_bytes(), 4 * mib);
  other = device_memory();
  ASSERT_TRUE(device_->restore(memory.view()));
  EXPECT_EQ(free_bytes(), 3 * mib);
}

// Guards: bytes that were free already are not freed again.
TEST_P(discard_test, discarded_memory_may_be_released) {
  auto memory = device_->allocate_device(mib).value();
  ASSERT_TRUE(device_->discard(memory.view()));
  memory = device_memory();
  EXPECT_EQ(free_bytes(), device_bytes);
}

std::unique_ptr<device> make_host() { return host::make_device({.device_bytes = device_bytes}); }
std::unique_ptr<device> make_manual() {
  return std::make_unique<manual::manual_device>(manual::options{device_bytes, device_bytes});
}

INSTANTIATE_TEST_SUITE_P(backends, discard_test,
                         ::testing::Values(backend{"host", make_host}, backend{"manual", make_manual}),
                         [](const auto& made) { return std::string(made.param.name); });

// Guards: a stray access to the pool of a sleeping engine is found at once, not read as zeros.
TEST(host_discard_death_test, every_access_in_between_is_a_fault) {
  const auto device = host::make_device({.device_bytes = device_bytes});
  auto memory = device->allocate_device(3 * mib).value();
  const auto range = memory.view();
  ASSERT_TRUE(device->discard(range));
  EXPECT_DEATH({ *const_cast<volatile std::byte*>(range.data) = std::byte{1}; }, "");
  EXPECT_DEATH({ (void)*const_cast<volatile std::byte*>(range.data + range.num_bytes - 1); }, "");
  ASSERT_TRUE(device->restore(range));
  EXPECT_EQ(count(range, std::byte{0}), range.num_bytes);
}

TEST(manual_discard_test, is_poisoned_and_refused_under_an_outstanding_batch) {
  manual::manual_device device;
  auto memory = device.allocate_device(1024).value();
  auto host = device.allocate_host(1024).value();
  auto load = device.make_stream("load").value();
  const auto range = memory.view();
  const auto note = [](const copy_outcome&) {};
  const copy_batch batch{{{range.data + 16, host.view().data, 16}}, copy_direction::to_device, 1};

  ASSERT_TRUE(load->enqueue_copies(batch, note));
  const auto early = device.discard(range);
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().text.find("outstanding batch"), std::string::npos);
  EXPECT_EQ(count(range, manual::device_poison), range.num_bytes);
  ASSERT_TRUE(device.complete_copies(1));

  ASSERT_TRUE(device.discard(range));
  EXPECT_EQ(count(range, manual::discarded_poison), range.num_bytes);
  ASSERT_TRUE(load->enqueue_copies(batch, note));
  EXPECT_FALSE(device.restore(range));
  ASSERT_TRUE(device.complete_copies(1));
  ASSERT_TRUE(device.restore(range));
  EXPECT_EQ(count(range, manual::device_poison), range.num_bytes);
}

}  // namespace
}  // namespace sluice::gpu
