// SPDX-License-Identifier: Apache-2.0
//
// tests/support/deterministic_system.hpp, and feature by feature what messages/caf_compat.hpp promises.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <thread>

#include "../support/deterministic_system.hpp"
#include "caf_compat_actors.hpp"

namespace sluice::inline v0 {
namespace compat_test {
namespace {

class caf_compat : public ::testing::Test {
 protected:
  caf_compat() {
    worker = sys.spawn<worker_actor, worker_state>(std::make_unique<int>(100));
    other = sys.spawn<worker_actor, worker_state>(std::make_unique<int>(200));
    driver = sys.spawn<driver_actor, driver_state>(worker, other, log);
    sys.run_all();
  }

  sluice::testing::deterministic_system sys{[](caf::actor_system_config& cfg) {
    compat::register_types<caf::id_block::sluice_compat_test>(cfg);
    compat::register_error_codes<fault>(cfg);
  }};
  std::shared_ptr<driver_log> log = std::make_shared<driver_log>();
  worker_actor worker;
  worker_actor other;
  driver_actor driver;
};

TEST_F(caf_compat, messages_can_be_printed) {
  EXPECT_EQ(caf::deep_to_string(tick{}), "tick()");
  EXPECT_EQ(caf::deep_to_string(start{{5}}), "start(5)");
  EXPECT_NE(caf::deep_to_string(make_wide()).find("[1, 2]"), std::string::npos);
}

// -- mail
// --------------------------------------------------------------------------------------------------------------

TEST_F(caf_compat, request_gets_value) {
  compat::anon_mail(start{{5}}).send(driver);
  EXPECT_TRUE(sys.deliver<start>(driver));
  EXPECT_TRUE(sys.deliver<start>(worker));
  EXPECT_TRUE(log->started.empty());
  EXPECT_TRUE(sys.deliver_response(driver));
  EXPECT_EQ(log->started, (ids{{105}}));
}

TEST_F(caf_compat, request_gets_error_with_code_and_context) {
  compat::anon_mail(start{{0}}).send(driver);
  sys.run_all();
  ASSERT_EQ(log->errors.size(), 1u);
  const auto& err = log->errors[0];
  EXPECT_EQ(compat::code_of<fault>(err), fault::lost);
  EXPECT_EQ(compat::context_of<ids>(err), (ids{{7}, {8}}));
  EXPECT_EQ(compat::context_of<std::string>(err), "");
  EXPECT_FALSE(compat::is_timeout(err));
  EXPECT_FALSE(compat::is_down(err));
  EXPECT_NE(sys.system().render(err).find("lost"), std::string::npos) << sys.system().render(err);
}

TEST_F(caf_compat, request_times_out_under_the_virtual_clock) {
  compat::anon_mail(start{{5}}).send(driver);
  EXPECT_TRUE(sys.deliver<start>(driver));
  EXPECT_EQ(sys.advance(99ms), 0u);
  EXPECT_FALSE(sys.has_mail(driver));
  EXPECT_EQ(sys.advance(1ms), 1u);
  EXPECT_TRUE(sys.deliver_response(driver));
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_TRUE(compat::is_timeout(log->errors[0]));
  EXPECT_FALSE(compat::is_down(log->errors[0]));
  EXPECT_EQ(compat::code_of<fault>(log->errors[0]), std::nullopt);
  // The answer that comes after the timeout is dropped.
  sys.run_all();
  EXPECT_TRUE(log->started.empty());
  EXPECT_EQ(log->errors.size(), 1u);
}

TEST_F(caf_compat, request_to_dead_actor_is_down) {
  compat::send_exit(worker, caf::make_error(caf::exit_reason::kill));
  sys.run_all();
  compat::anon_mail(start{{5}}).send(driver);
  sys.run_all();
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_TRUE(compat::is_down(log->errors[0]));
}

TEST_F(caf_compat, request_in_the_mailbox_of_a_dying_actor_is_down) {
  compat::anon_mail(crash{}).send(worker);
  compat::anon_mail(start{{5}}).send(driver);
  EXPECT_TRUE(sys.deliver<start>(driver));
  sys.run_all();
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_TRUE(compat::is_down(log->errors[0]));
}

TEST_F(caf_compat, promise_of_nothing_delivers_later) {
  compat::anon_mail(flush{{{1}}}).send(driver);
  sys.run_all();
  EXPECT_EQ(log->num_flushed, 0);
  compat::anon_mail(release{}).send(worker);
  sys.run_all();
  EXPECT_EQ(log->num_flushed, 1);
}

TEST_F(caf_compat, promise_delivers_an_error) {
  compat::anon_mail(flush{}).send(driver);
  sys.run_all();
  compat::anon_mail(release{}).send(worker);
  sys.run_all();
  EXPECT_EQ(log->num_flushed, 0);
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_EQ(compat::code_of<fault>(log->errors[0]), fault::stuck);
}

TEST_F(caf_compat, delayed_mail_to_oneself) {
  compat::anon_mail(tick{}).send(driver);
  EXPECT_TRUE(sys.deliver<tick>(driver));
  EXPECT_FALSE(sys.has_mail(driver));
  EXPECT_TRUE(sys.has_timer());
  EXPECT_EQ(sys.advance(10ms), 1u);
  EXPECT_EQ(log->num_ticks, 1);
  EXPECT_TRUE(sys.deliver<tick>(driver));
  EXPECT_EQ(log->num_ticks, 2);
}

TEST_F(caf_compat, sender_is_a_typed_handle) {
  sluice::testing::probe<worker_actor> peer{sys};
  sys.run_all();
  compat::anon_mail(greeting{peer.handle()}).send(driver);
  sys.run_all();
  EXPECT_EQ(peer.received<tick>().size(), 1u);  // anonymous: only the handle in the message
  caf::send_as(peer.handle(), driver, greeting{peer.handle()});
  sys.run_all();
  EXPECT_EQ(peer.received<tick>().size(), 3u);
}

TEST_F(caf_compat, request_whose_handler_throws_is_down) {
  compat::anon_mail(flush{{{99}}}).send(driver);
  sys.run_all();
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_TRUE(compat::is_down(log->errors[0]));
  EXPECT_EQ(log->downs.size(), 1u);
}

TEST_F(caf_compat, error_answered_to_a_plain_send_does_not_end_the_sender) {
  caf::send_as(driver, worker, flush{});
  compat::anon_mail(release{}).send(worker);
  sys.run_all();
  compat::anon_mail(tick{}).send(driver);
  EXPECT_TRUE(sys.deliver<tick>(driver));
  EXPECT_EQ(log->num_ticks, 1);
}

// -- ends
// --------------------------------------------------------------------------------------------------------------

TEST_F(caf_compat, monitor_sees_the_exception_of_the_actor_that_threw) {
  compat::anon_mail(crash{}).send(worker);
  sys.run_all();
  ASSERT_EQ(log->downs.size(), 1u);
  EXPECT_TRUE(log->more_downs.empty());
  EXPECT_EQ(log->downs[0], caf::sec::runtime_error);
  EXPECT_EQ(compat::context_of<std::string>(log->downs[0]), "crashed on purpose");
  compat::send_exit(other, compat::make_error(fault::stuck));
  sys.run_all();
  ASSERT_EQ(log->more_downs.size(), 1u);
  EXPECT_EQ(compat::code_of<fault>(log->more_downs[0]), fault::stuck);
}

TEST_F(caf_compat, normal_end_has_an_empty_reason) {
  compat::anon_mail(tick{}).send(worker);
  sys.run_all();
  ASSERT_EQ(log->downs.size(), 1u);
  EXPECT_FALSE(log->downs[0]);
}

TEST_F(caf_compat, late_down_message_after_remove_is_ignored) {
  compat::send_exit(other, caf::make_error(caf::exit_reason::kill));
  compat::anon_mail(wide{}).send(driver);  // this handler removes the monitor
  EXPECT_TRUE(sys.deliver<caf::exit_msg>(other));
  EXPECT_EQ(sys.num_pending(driver), 2u);
  sys.run_all();
  EXPECT_EQ(log->wides.size(), 1u);
  EXPECT_TRUE(log->more_downs.empty());
}

// -- the fixture
// -------------------------------------------------------------------------------------------------------

TEST_F(caf_compat, fixture_runs_one_message_of_one_actor) {
  compat::anon_mail(tick{}).send(driver);
  compat::anon_mail(make_wide()).send(driver);
  compat::anon_mail(flush{}).send(worker);
  EXPECT_EQ(sys.num_pending(), 3u);
  EXPECT_TRUE(sys.deliver<tick>(driver));
  EXPECT_EQ(sys.num_pending(), 2u);
  EXPECT_TRUE(log->wides.empty());
  EXPECT_EQ(sys.peek<wide>(driver), make_wide());
  EXPECT_EQ(sys.peek<tick>(driver), std::nullopt);
  EXPECT_TRUE(sys.deliver<wide>(driver));
  EXPECT_TRUE(sys.has_mail(worker));
  EXPECT_TRUE(sys.run_until([&] { return sys.num_pending() == 0; }));
}

TEST_F(caf_compat, fixture_refuses_what_is_not_next) {
  EXPECT_NONFATAL_FAILURE(sys.deliver<tick>(driver), "next is nothing");
  compat::anon_mail(start{{5}}).send(driver);
  EXPECT_NONFATAL_FAILURE(sys.deliver<tick>(driver), "start(5)");
  EXPECT_NONFATAL_FAILURE(sys.deliver_response(driver), "start(5)");
  EXPECT_TRUE(sys.has_mail(driver));
}

TEST_F(caf_compat, fixture_takes_mail_from_another_thread) {
  std::thread{[this] { compat::anon_mail(tick{}).send(driver); }}.join();
  EXPECT_TRUE(sys.deliver<tick>(driver));
}

TEST_F(caf_compat, fixture_delivers_to_an_actor_that_never_ran) {
  auto fresh = sys.spawn<worker_actor, worker_state>(std::make_unique<int>(1));
  compat::anon_mail(flush{}).send(fresh);
  compat::anon_mail(release{}).send(fresh);
  EXPECT_TRUE(sys.deliver<flush>(fresh));
  EXPECT_EQ(sys.num_pending(fresh), 1u);
  EXPECT_TRUE(sys.deliver<release>(fresh));
}

TEST_F(caf_compat, probe_records_and_answers) {
  sluice::testing::probe<worker_actor> peer{sys};
  auto client = sys.spawn<driver_actor, driver_state>(peer.handle(), other, log);
  compat::anon_mail(start{{5}}).send(client);
  compat::anon_mail(start{{6}}).send(client);
  sys.run_all();
  ASSERT_EQ(peer.received<start>().size(), 2u);
  EXPECT_EQ(peer.take<start>().id, job_id{5});
  EXPECT_TRUE(peer.answer<start>(started{{50}}));
  EXPECT_TRUE(sys.deliver_response(client));
  EXPECT_EQ(log->started, (ids{{50}}));
  EXPECT_TRUE(peer.answer<start>(compat::make_error(fault::lost)));
  EXPECT_TRUE(sys.deliver_response(client));
  EXPECT_EQ(log->errors.size(), 1u);
  EXPECT_FALSE(peer.answer<start>(started{}));
  compat::anon_mail(flush{}).send(client);
  sys.run_all();
  EXPECT_EQ(log->num_flushed, 0);
  EXPECT_TRUE(peer.answer<flush>());
  EXPECT_TRUE(sys.deliver_response(client));
  EXPECT_EQ(log->num_flushed, 1);
}

}  // namespace
}  // namespace compat_test
}  // namespace sluice::inline v0
