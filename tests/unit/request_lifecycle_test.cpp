// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/request_lifecycle.hpp>

#include <gtest/gtest.h>

namespace sluice {
namespace {

struct transition {
  request_event event;
  std::optional<request_phase> from_waiting, from_loading, from_running, from_finished;
};

constexpr auto no = std::nullopt;
constexpr auto waiting = request_phase::waiting, loading = request_phase::loading, running = request_phase::running,
               finished = request_phase::finished;

// Guards: the whole table; a missing arrow is as wrong as a false one.
TEST(request_lifecycle, full_table) {
  const transition table[] = {
      {request_event::admit_running, running, no, no, no},
      {request_event::admit_loading, loading, no, no, no},
      {request_event::start, no, running, no, no},
      {request_event::preempt, no, waiting, waiting, no},
      {request_event::lose_load, no, waiting, no, no},
      {request_event::withdraw, no, waiting, waiting, no},
      {request_event::finish, finished, finished, finished, no},
  };
  static_assert(std::size(table) == static_cast<std::size_t>(request_event::finish) + 1);
  static_assert(static_cast<int>(finished) == 3);
  for (const auto& row : table) {
    SCOPED_TRACE("event " + std::to_string(static_cast<int>(row.event)));
    EXPECT_EQ(next_phase(waiting, row.event), row.from_waiting);
    EXPECT_EQ(next_phase(loading, row.event), row.from_loading);
    EXPECT_EQ(next_phase(running, row.event), row.from_running);
    EXPECT_EQ(next_phase(finished, row.event), row.from_finished);
  }
}

}  // namespace
}  // namespace sluice
