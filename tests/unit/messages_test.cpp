// SPDX-License-Identifier: Apache-2.0
//
// Every message and value type survives a serialisation, with no field at its default. A field that is added to a
// struct makes these tests fail until it is given a value here, and then until it is serialised.
#include <sluice/messages/interfaces.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "message_fields.hpp"

namespace sluice {
namespace {

caf::actor_system& actor_system() {
  static auto* const system = [] {
    compat::init_types<caf::id_block::sluice>();
    static caf::actor_system_config config;
    compat::register_types<caf::id_block::sluice>(config);
    compat::configure_scheduler(config, 1);
    return new caf::actor_system(config);  // lives as long as the program
  }();
  return *system;
}

template <class T>
T round_trip(T value) {
#if SLUICE_CAF_1
  caf::byte_buffer bytes;
  caf::binary_serializer sink{actor_system(), bytes};
  EXPECT_TRUE(sink.apply(value));
  caf::binary_deserializer source{actor_system(), bytes};
  T copy{};
  EXPECT_TRUE(source.apply(copy));
#else
  std::vector<char> bytes;
  caf::binary_serializer sink{actor_system(), bytes};
  EXPECT_FALSE(sink(value));
  caf::binary_deserializer source{actor_system(), bytes};
  T copy{};
  EXPECT_FALSE(source(copy));
#endif
  EXPECT_EQ(source.remaining(), 0U);
  return copy;
}

/// The value is back whole, and no field of it could have been forgotten.
template <class T>
void expect_round_trip(const T& value) {
  SCOPED_TRACE(caf::deep_to_string(value));
  EXPECT_EQ(unit::num_default_fields(value), 0U);
  EXPECT_TRUE(unit::same(round_trip(value), value));
}

/// The same, and the type is known to the actor system, so that it can travel as a message.
template <class T>
void expect_message(const T& value) {
  expect_round_trip(value);
  const auto copy = round_trip(caf::make_message(value));
  ASSERT_TRUE(copy.template match_elements<T>());
  EXPECT_TRUE(unit::same(copy.template get_as<T>(0), value));
}

const block_copy copy_of_blocks{{3}, 1, {4}, 2, {9}};
const transfer_job job{{5}, {copy_of_blocks, {{7}, 0, {8}, 1, {1}}}};
const sampling_params sampling{0.75, 0xFFFFFFFFFFFFFFFFU};
const request_usage usage{1, 2, 3, 4, 5};
const request_params params{{11}, {1, -2, 3}, 99, sampling, true, "salt", -7, 8, 9, false};
const batch_entry entry{{12}, {13}, 14, {15, 16}, 21, {{{17}, {18}}, {{19}}}, true, 20, sampling};
const cache_reset_report cache_report{"host", true, 1, 2, {{3}, {4}}, 5, 6, true};
const block_counts blocks{1, 2, 3, 4};
const slot_counts slots{1, 2, 3, 4, 5};

engine_totals make_totals() {
  unit::totals_array numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1000 + i;
  return std::bit_cast<engine_totals>(numbers);
}

engine_snapshot make_snapshot() {
  const request_snapshot request{{1}, request_phase::running, waiting_reason::no_blocks, {2}, 3, 4, 5, {{6}}, 7};
  const transfer_snapshot transfer{{1}, transfer_direction::load, {2}, {3}, 4, 5, true};
  return {{9}, false, true, control_state::pausing, {request}, {transfer}, blocks, slots, make_totals()};
}

// Guards: the parts that messages are made of.
TEST(messages, value_types_survive_serialisation) {
  expect_round_trip(copy_of_blocks);
  expect_round_trip(job);
  expect_round_trip(transfer_outcome{{1}, transfer_result::stale, 2, std::chrono::nanoseconds{-3}, true});
  expect_round_trip(pending_transfer{{1}, transfer_direction::load, {2}});
  expect_round_trip(sampling);
  expect_round_trip(params);
  expect_round_trip(usage);
  expect_round_trip(entry);
  expect_round_trip(step_batch{{1}, {entry, entry}});
  expect_round_trip(sampled_token{{1}, {2}, -3});
  expect_round_trip(cache_report);
  expect_round_trip(blocks);
  expect_round_trip(slots);
}

// Guards: ids of the largest value are not cut.
TEST(messages, ids_survive_serialisation) {
  EXPECT_EQ(round_trip(step_id{~std::uint64_t{0}}), step_id{~std::uint64_t{0}});
  EXPECT_EQ(round_trip(block_id{~std::uint32_t{0}}), block_id{~std::uint32_t{0}});
  const auto largest = static_cast<std::uint16_t>(~0U);
  EXPECT_EQ(round_trip(group_id{largest}), group_id{largest});
}

// Guards: every enumerator comes back as itself.
TEST(messages, enumerators_survive_serialisation) {
  for (int i = 0; i <= static_cast<int>(errc::invariant_violated); ++i)
    EXPECT_EQ(round_trip(step_failed{{1}, static_cast<errc>(i), {}}).code, static_cast<errc>(i));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(round_trip(finish_request{{1}, static_cast<finish_reason>(i), 0}).reason, static_cast<finish_reason>(i));
    EXPECT_EQ(round_trip(transfer_outcome{{1}, static_cast<transfer_result>(i), 0, {}, false}).result,
              static_cast<transfer_result>(i));
  }
}

// Guards: totals have one number per field; one that is not serialised would come back as 0.
TEST(messages, totals_survive_serialisation) {
  const auto totals = make_totals();
  EXPECT_TRUE(unit::same(round_trip(totals), totals));
}

// Guards: what asks and answers beside the steps.
TEST(messages, commands_and_answers_survive_serialisation) {
  expect_message(submit_request{params});
  expect_message(abort_request{{1}});
  expect_message(finish_request{{1}, finish_reason::error, 2});
  expect_message(reset_prefix_cache{true, true, false, std::chrono::nanoseconds{5}});
  expect_message(pause_engine{pause_mode::keep, false, false, std::chrono::nanoseconds{5}});
  expect_message(resume_engine{});
  expect_message(sleep_engine{2, pause_mode::wait, false, std::chrono::nanoseconds{5}});
  expect_message(wake_engine{false, false});
  expect_message(control_report{control_outcome::refused, {cache_report}, "text"});
  expect_message(reset_report{true, {cache_report, cache_report}});
  expect_message(snapshot_query{});
  expect_message(make_snapshot());
  expect_message(integrity_query{});
  expect_message(integrity_report{{"a", "b"}});
}

// Guards: the messages of a boundary.
TEST(messages, boundary_messages_survive_serialisation) {
  expect_message(stage_loads{{1}, {job}});
  expect_message(unstage_loads{{1}});
  expect_message(step_boundary{{1}, {{{2}, transfer_direction::load, {3}}}, {{4}}});
  expect_message(boundary_cleared{{1}, 2, 3});
  expect_message(current_step_loads{{1}});
  expect_message(step_load_ids{{1}, {{2}, {3}}});
  expect_message(flush_stores{{1}, {{2}, {3}}});
  expect_message(stores_flushed{{1}});
}

// Guards: the messages of dispatch and of results.
TEST(messages, step_messages_survive_serialisation) {
  expect_message(execute_step{{{1}, {entry}}});
  expect_message(submit_loads{{2}, {job}, {1}});
  expect_message(submit_stores{{2}, {job}, {1}});
  expect_message(step_enqueued{{1}});
  expect_message(step_result{{1}, {{{2}, {3}, 4}}});
  expect_message(step_failed{{1}, errc::device_failed, "text"});
  expect_message(change_memory{true, true, true});
  expect_message(memory_changed{errc::device_failed, "text"});
  expect_message(transfers_settled{transfer_direction::store, {{{1}, transfer_result::failed, 2, {}}}});
}

// Guards: the messages to and from request actors, the supervisor and device threads.
TEST(messages, other_messages_survive_serialisation) {
  expect_message(request_tokens{{1}, {2, 3}});
  expect_message(request_finished{{1}, {2}, finish_reason::abort, errc::model_failed, "text", usage});
  expect_message(client_gone{});
  expect_message(stop_watching{});
  expect_message(copies_ended{});
  expect_message(compute_reached{{1}, "text"});
}

// Guards: the context of a boundary's error, a list of ids.
TEST(messages, an_error_carries_transfer_ids) {
  const std::vector<transfer_id> ids{{1}, {2}};
  const auto copy = round_trip(caf::make_message(ids));
  ASSERT_TRUE(copy.match_elements<std::vector<transfer_id>>());
  EXPECT_EQ(copy.get_as<std::vector<transfer_id>>(0), ids);
}

}  // namespace
}  // namespace sluice
