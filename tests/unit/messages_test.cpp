// SPDX-License-Identifier: Apache-2.0
//
// Every message and value type survives a serialisation, with no field at its default. A field that is added to a
// struct makes these tests fail until it is given a value here, and then until it is serialised.
#include <sluice/messages/interfaces.hpp>

#include <set>
#include <vector>

#include <gtest/gtest.h>

#if !SLUICE_CAF_1
#include <support/deterministic_system.hpp>
#endif

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
T round_trip(T value, caf::actor_system& system = actor_system()) {
#if SLUICE_CAF_1
  caf::byte_buffer bytes;
  caf::binary_serializer sink{system, bytes};
  EXPECT_TRUE(sink.apply(value));
  caf::binary_deserializer source{system, bytes};
  T copy{};
  EXPECT_TRUE(source.apply(copy));
#else
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  EXPECT_FALSE(sink(value));
  caf::binary_deserializer source{system, bytes};
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

/// Types that `expect_message` was called with.
std::set<caf::type_id_t>& tested_types() {
  static std::set<caf::type_id_t> types;
  return types;
}

/// The same, and the type is known to the actor system, so that it can travel as a message.
template <class T>
void expect_message(const T& value) {
  tested_types().insert(caf::type_id<T>::value);
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

const request_snapshot request{{1}, request_phase::running, waiting_reason::no_blocks, {2}, 3, 4, 5, {{6}}, 7};
const transfer_snapshot transfer{{1}, transfer_direction::load, {2}, {3}, 4, 5, true};

engine_snapshot make_snapshot() {
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
  expect_round_trip(request);
  expect_round_trip(transfer);
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
    EXPECT_EQ(round_trip(engine_snapshot{{}, true, false, static_cast<control_state>(i), {}, {}, {}, {}, {}}).control,
              static_cast<control_state>(i));
    EXPECT_EQ(round_trip(request_snapshot{{1}, static_cast<request_phase>(i), {}, {}, 0, 0, 0, {}, 0}).phase,
              static_cast<request_phase>(i));
  }
  for (int i = 0; i <= static_cast<int>(waiting_reason::paused); ++i)
    EXPECT_EQ(round_trip(request_snapshot{{1}, {}, static_cast<waiting_reason>(i), {}, 0, 0, 0, {}, 0}).reason,
              static_cast<waiting_reason>(i));
  for (int i = 0; i <= static_cast<int>(pause_mode::keep); ++i)
    EXPECT_EQ(round_trip(pause_engine{static_cast<pause_mode>(i), true, true, {}}).mode, static_cast<pause_mode>(i));
  for (int i = 0; i <= static_cast<int>(control_outcome::failed); ++i)
    EXPECT_EQ(round_trip(control_report{static_cast<control_outcome>(i), {}, {}}).outcome,
              static_cast<control_outcome>(i));
  for (auto direction : {transfer_direction::load, transfer_direction::store})
    EXPECT_EQ(round_trip(pending_transfer{{1}, direction, {2}}).direction, direction);
}

// Guards: totals have one number per field; one that is not serialised would come back as 0.
TEST(messages, totals_survive_serialisation) {
  const auto totals = make_totals();
  EXPECT_TRUE(unit::same(round_trip(totals), totals));
}

/// What asks and answers beside the steps.
void check_commands_and_answers() {
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

/// Of a boundary.
void check_boundary_messages() {
  expect_message(stage_loads{{1}, {job}});
  expect_message(unstage_loads{{1}});
  expect_message(step_boundary{{1}, {{{2}, transfer_direction::load, {3}}}, {{4}}});
  expect_message(boundary_cleared{{1}, 2, 3});
  expect_message(current_step_loads{{1}});
  expect_message(step_load_ids{{1}, {{2}, {3}}});
  expect_message(flush_stores{{1}, {{2}, {3}}});
  expect_message(stores_flushed{{1}});
}

/// Of dispatch and of results.
void check_step_messages() {
  expect_message(execute_step{{{1}, {entry}}});
  expect_message(submit_loads{{2}, {job}, {1}});
  expect_message(submit_stores{{2}, {job}, {1}});
  expect_message(step_enqueued{{1}});
  expect_message(step_result{{1}, {{{2}, {3}, 4}}});
  expect_message(step_failed{{1}, errc::device_failed, "text"});
  expect_message(change_memory{true, true, true});
  expect_message(memory_changed{errc::device_failed, "text"});
  expect_message(transfers_settled{transfer_direction::store, {{{1}, transfer_result::failed, 2, {}}}});
  expect_message(adopt_transfers{{{1}, {2}}, {3}});
}

/// To and from request actors, the supervisor and device threads.
void check_other_messages() {
  expect_message(request_tokens{{1}, {2, 3}});
  expect_message(request_finished{{1}, {2}, finish_reason::abort, errc::model_failed, "text", usage});
  expect_message(client_gone{});
  expect_message(stop_watching{});
  expect_message(copies_ended{});
  expect_message(compute_reached{{1}, "text"});
}

/// What the scheduler sends itself, and what a tier tells it.
void check_reminders() {
  expect_message(check_transfers{});
  expect_message(wait_expired{{1}, {2}});
  expect_message(control_expired{3});
  expect_message(lookups_answered{});
  expect_message(plan_again{});
}

// Guards: every message of every interface comes back whole.
TEST(messages, commands_and_answers_survive_serialisation) { check_commands_and_answers(); }
TEST(messages, boundary_messages_survive_serialisation) { check_boundary_messages(); }
TEST(messages, step_messages_survive_serialisation) { check_step_messages(); }
TEST(messages, other_messages_survive_serialisation) { check_other_messages(); }
TEST(messages, reminders_survive_serialisation) { check_reminders(); }

// Guards: whatever gets a type id is tested here. The error code, its list of ids and the messages that hold actors
// have tests of their own below.
TEST(messages, none_is_forgotten) {
  tested_types() = {caf::type_id<errc>::value, caf::type_id<std::vector<transfer_id>>::value,
                    caf::type_id<connect_engine>::value, caf::type_id<load_actor_replaced>::value,
                    caf::type_id<store_actor_replaced>::value};
  check_commands_and_answers();
  check_boundary_messages();
  check_step_messages();
  check_other_messages();
  check_reminders();
  for (auto id = caf::id_block::sluice::begin; id < caf::id_block::sluice::end; ++id)
    EXPECT_TRUE(tested_types().contains(id)) << "the type at position " << id - caf::id_block::sluice::begin
                                             << " of the list in interfaces.hpp";
}

#if !SLUICE_CAF_1
template <class T>
void expect_message_with_actors(const T& value, caf::actor_system& system) {
  EXPECT_EQ(unit::num_default_fields(value), 0U);
  EXPECT_TRUE(unit::same(round_trip(value, system), value));
  const auto copy = round_trip(caf::make_message(value), system);
  ASSERT_TRUE(copy.template match_elements<T>());
  EXPECT_TRUE(unit::same(copy.template get_as<T>(0), value));
}

// Guards: the messages that tell the scheduler of the other actors name each of them in its place.
TEST(messages, actors_survive_serialisation) {
  testing::deterministic_system system([](caf::actor_system_config& config) {
    compat::register_types<caf::id_block::sluice>(config);
  });
  const testing::probe<load_actor> loads(system);
  const testing::probe<store_actor> stores(system);
  const testing::probe<preemption_handler> handler(system);
  const testing::probe<executor_actor> executor(system);
  expect_message_with_actors(connect_engine{loads.handle(), stores.handle(), handler.handle(), executor.handle()},
                             system.system());
  expect_message_with_actors(load_actor_replaced{loads.handle()}, system.system());
  expect_message_with_actors(store_actor_replaced{stores.handle()}, system.system());
}
#endif

// Guards: a boundary's error is the same error on the other side, with its context, a list of ids.
TEST(messages, an_error_carries_its_code_and_transfer_ids) {
  const std::vector<transfer_id> ids{{1}, {2}};
  const auto copy = round_trip(compat::make_error(errc::flush_timed_out, ids));
  EXPECT_EQ(compat::code_of<errc>(copy), errc::flush_timed_out);
  EXPECT_EQ(compat::context_of<std::vector<transfer_id>>(copy), ids);
}

}  // namespace
}  // namespace sluice
