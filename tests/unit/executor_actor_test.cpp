// SPDX-License-Identifier: Apache-2.0
//
// The executor actor between a recording scheduler, a scripted model and the manual device.
#include <cerrno>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/executor/executor_actor.hpp>
#include <sluice/gpu/manual/manual_device.hpp>

#include "../support/deterministic_system.hpp"

namespace sluice::testing {
namespace {

gpu::error no_luck(std::string call) { return {std::move(call), EIO, "no luck", 0}; }

/// Samples token 100 * step + entry, and notes what it was given. Wants memory of every kind.
struct scripted_model final : model_executor {
  struct computed {
    step_id step;
    std::vector<request_id> requests;
    std::vector<sampled_token> previous;
  };

  model_info info() const override { return {}; }
  kv_spec kv(std::uint32_t) const override { return {}; }
  void bind(const kv_memory&) override {}
  gpu::status enqueue(const step_batch& batch, const std::vector<sampled_token>& previous, gpu::stream& compute,
                      std::vector<sampled_token>& sampled) override {
    entries = batch.entries.data();
    if (std::exchange(refuses, false)) return tl::unexpected(no_luck("launch"));
    auto enqueued = compute.enqueue_function([this, &batch, &previous, &sampled] {
      computed now{batch.step, {}, previous};
      for (const auto& entry : batch.entries) {
        const auto token = static_cast<token_id>(100 * batch.step.value + now.requests.size());
        sampled.push_back({entry.request, entry.attempt, token});
        now.requests.push_back(entry.request);
      }
      steps.push_back(std::move(now));
    });
    if (std::exchange(throws, false)) throw std::runtime_error("the model is broken");
    return enqueued;
  }
  gpu::status release_weights() override { return change("release"); }
  gpu::status restore_weights() override { return change("restore"); }
  gpu::status change(const char* what) {
    if (std::exchange(refuses, false)) return tl::unexpected(no_luck(what));
    weight_calls.emplace_back(what);
    return {};
  }

  bool refuses = false;
  bool throws = false;
  const batch_entry* entries = nullptr;  ///< of the batch that was enqueued last
  std::vector<computed> steps;           ///< in the order in which they ran
  std::vector<std::string> weight_calls;
};

/// The manual stream and device, whose callbacks and recordings the test can have refused.
struct faulty_stream final : gpu::stream {
  explicit faulty_stream(std::unique_ptr<gpu::stream> real) : inner(std::move(real)) {}
  const std::string& name() const override { return inner->name(); }
  gpu::status enqueue_copies(gpu::copy_batch batch, gpu::copy_callback done) override {
    return inner->enqueue_copies(std::move(batch), std::move(done));
  }
  gpu::status enqueue_function(std::function<void()> function) override {
    return inner->enqueue_function(std::move(function));
  }
  gpu::status call_when_reached(gpu::reached_callback callback) override {
    if (std::exchange(refuses, false)) return tl::unexpected(no_luck("call_when_reached"));
    return inner->call_when_reached(std::move(callback));
  }
  std::unique_ptr<gpu::stream> inner;
  bool refuses = false;
};

struct faulty_device final : gpu::device {
  gpu::device_info info() const override { return real.info(); }
  tl::expected<gpu::device_memory, gpu::error> allocate_device(std::size_t n) override {
    return real.allocate_device(n);
  }
  gpu::status discard(gpu::memory_view range) override { return real.discard(range); }
  gpu::status restore(gpu::memory_view range) override { return real.restore(range); }
  tl::expected<gpu::host_memory, gpu::error> allocate_host(std::size_t n) override { return real.allocate_host(n); }
  tl::expected<std::unique_ptr<gpu::stream>, gpu::error> make_stream(std::string name) override {
    return real.make_stream(std::move(name));
  }
  gpu::status record_step(gpu::stream& on, std::uint64_t step) override {
    if (std::exchange(refuses, false)) return tl::unexpected(no_luck("record_step"));
    return real.record_step(*static_cast<faulty_stream&>(on).inner, step);
  }
  gpu::status wait_step(gpu::stream&, std::uint64_t) override { return {}; }

  gpu::manual::manual_device real{gpu::manual::options{4096, 4096}};
  bool refuses = false;
};

deterministic_system::configure_fn register_messages() {
  return [](caf::actor_system_config& config) {
    compat::register_types<caf::id_block::sluice>(config);
    compat::register_error_codes<errc>(config);
  };
}

/// Sends one change of memory and keeps the answer.
using asker = compat::typed_actor<caf::result<void>(client_gone)>;
struct asker_state {
  static constexpr const char* name = "asker";
  asker_state(asker::pointer self, executor_actor executor, change_memory message, memory_changed* answer) {
    compat::mail(self, message)
        .request(executor, std::chrono::hours{1})
        .then([answer](const memory_changed& changed) { *answer = changed; },
              [](const caf::error&) { ADD_FAILURE() << "no answer"; });
  }
  asker::behavior_type make_behavior() {
    return {[](const client_gone&) {}};
  }
};

struct executor_actor_test : ::testing::Test {
  ~executor_actor_test() override { system.end_all(); }

  static step_batch batch(std::uint64_t step, std::vector<std::uint64_t> requests) {
    step_batch made{{step}, {}};
    for (const auto id : requests) {
      batch_entry entry;
      entry.request = {id};
      entry.attempt = {1};
      entry.tokens = {pending_token};
      entry.samples = true;
      made.entries.push_back(std::move(entry));
    }
    return made;
  }

  void send(std::uint64_t step, std::vector<std::uint64_t> requests) {
    compat::anon_mail(execute_step{batch(step, std::move(requests))}).send(executor);
    system.run_all();
  }

  void run_stream() {
    device.real.run_all("compute");
    system.run_all();
  }

  void end_executor() {
    compat::send_exit(executor, caf::make_error(caf::exit_reason::user_shutdown));
    executor = executor_actor{};
    system.run_all();
  }

  memory_changed change(change_memory message) {
    memory_changed answer{errc::engine_failed, "not answered"};
    system.spawn<asker, asker_state>(executor, message, &answer);
    system.run_all();
    return answer;
  }

  std::vector<std::uint64_t> enqueued() { return steps_of(scheduler.received<step_enqueued>()); }
  std::vector<std::uint64_t> ended() { return steps_of(scheduler.received<step_result>()); }
  std::vector<std::uint64_t> failed() { return steps_of(scheduler.received<step_failed>()); }
  template <class Msg>
  static std::vector<std::uint64_t> steps_of(const std::deque<Msg>& messages) {
    std::vector<std::uint64_t> steps;
    for (const auto& message : messages) steps.push_back(message.step.value);
    return steps;
  }

  void expect_failure(std::size_t index, errc code, const std::string& text) {
    const auto& message = scheduler.received<step_failed>().at(index);
    EXPECT_EQ(message.code, code);
    EXPECT_NE(message.message.find(text), std::string::npos) << message.message;
  }

  using steps = std::vector<std::uint64_t>;

  scripted_model model;
  faulty_device device;
  gpu::device_memory pool = device.allocate_device(1024).value();
  faulty_stream stream{device.make_stream("compute").value()};
  deterministic_system system{register_messages()};
  probe<scheduler_actor> scheduler{system};
  executor_actor executor = system.spawn<executor_actor, executor_actor_state>(
      scheduler.handle(), &model, stream_lease{&device, &stream}, pool.view());
};

TEST_F(executor_actor_test, a_step_is_enqueued_at_once_and_reported_when_the_stream_has_passed_it) {
  send(1, {7, 8});
  EXPECT_EQ(enqueued(), steps{1});
  EXPECT_EQ(device.real.outstanding("compute").at(1), (gpu::manual::operation{gpu::manual::operation_kind::record, 1}));
  EXPECT_TRUE(ended().empty());
  run_stream();
  EXPECT_EQ(ended(), steps{1});
  const std::vector<sampled_token> expected = {{{7}, {1}, 100}, {{8}, {1}, 101}};
  EXPECT_EQ(scheduler.received<step_result>()[0].sampled, expected);
  EXPECT_TRUE(failed().empty());
}

// Guards: the entries of a step are not copied on their way to the model.
TEST_F(executor_actor_test, the_batch_is_moved) {
  execute_step message{batch(1, {7, 8, 9})};
  const auto* entries = message.batch.entries.data();
  compat::anon_mail(std::move(message)).send(executor);
  system.run_all();
  EXPECT_EQ(model.entries, entries);
}

TEST_F(executor_actor_test, two_steps_in_flight_and_the_second_sees_what_the_first_sampled) {
  send(1, {7, 8});
  send(2, {8});
  EXPECT_EQ(enqueued(), (steps{1, 2}));
  EXPECT_TRUE(model.steps.empty());
  run_stream();
  EXPECT_EQ(ended(), (steps{1, 2}));
  ASSERT_EQ(model.steps.size(), 2U);
  EXPECT_TRUE(model.steps[0].previous.empty());
  EXPECT_EQ(model.steps[1].previous, scheduler.received<step_result>()[0].sampled);
}

// Guards: the first step may have been reported when the second one, planned before that, arrives.
TEST_F(executor_actor_test, a_reported_step_is_still_seen_by_the_next_one) {
  send(1, {7});
  run_stream();
  send(2, {7});
  run_stream();
  send(3, {7});
  run_stream();
  EXPECT_EQ(model.steps.at(1).previous, (std::vector<sampled_token>{{{7}, {1}, 100}}));
  EXPECT_EQ(model.steps.at(2).previous, (std::vector<sampled_token>{{{7}, {1}, 200}}));
}

TEST_F(executor_actor_test, work_on_the_stream_outlives_the_executor) {
  send(1, {7});
  send(2, {8});
  end_executor();
  device.real.run_all("compute");
  ASSERT_EQ(model.steps.size(), 2U);
  EXPECT_EQ(model.steps[1].requests, std::vector<request_id>{{8}});
  EXPECT_EQ(model.steps[1].previous, (std::vector<sampled_token>{{{7}, {1}, 100}}));
}

TEST_F(executor_actor_test, an_enqueue_that_fails_is_reported_in_its_turn) {
  send(1, {7});
  model.refuses = true;
  send(2, {7});
  send(3, {8});
  EXPECT_EQ(enqueued(), (steps{1, 2, 3})) << "later copies wait for the step's event";
  EXPECT_TRUE(failed().empty()) << "the step before it has not ended";
  run_stream();
  EXPECT_EQ(ended(), (steps{1, 3}));
  EXPECT_EQ(failed(), steps{2});
  expect_failure(0, errc::device_failed, "launch failed: no luck");
  EXPECT_TRUE(model.steps.at(1).previous.empty()) << "the step before it sampled nothing";
}

TEST_F(executor_actor_test, a_failure_on_the_stream_fails_the_step) {
  ASSERT_TRUE(stream.enqueue_function([] { throw std::runtime_error("the kernel is broken"); }));
  send(1, {7});
  run_stream();
  EXPECT_EQ(failed(), steps{1});
  expect_failure(0, errc::model_failed, "the kernel is broken");
}

// Guards: the work is on the stream; its batch must live, and the step may not end before it.
TEST_F(executor_actor_test, a_recording_that_fails_fails_the_step_once_its_work_has_ended) {
  device.refuses = true;
  send(1, {7});
  EXPECT_TRUE(failed().empty());
  EXPECT_TRUE(model.steps.empty());
  run_stream();
  EXPECT_EQ(model.steps.at(0).requests, std::vector<request_id>{{7}});
  EXPECT_EQ(failed(), steps{1});
  expect_failure(0, errc::device_failed, "record_step failed: no luck");
  EXPECT_TRUE(ended().empty());
}

TEST_F(executor_actor_test, a_refused_callback_fails_the_step_and_its_batch_lives_until_the_stream_has_passed_it) {
  stream.refuses = true;
  send(1, {7});
  EXPECT_EQ(failed(), steps{1});
  expect_failure(0, errc::device_failed, "call_when_reached failed: no luck");
  send(2, {8});
  run_stream();
  ASSERT_EQ(model.steps.size(), 2U);
  EXPECT_EQ(model.steps[0].requests, std::vector<request_id>{{7}});
  EXPECT_EQ(model.steps[1].previous, (std::vector<sampled_token>{{{7}, {1}, 100}}));
  EXPECT_EQ(ended(), steps{2});
}

TEST_F(executor_actor_test, a_refused_callback_does_not_overtake_the_step_before) {
  send(1, {7});
  stream.refuses = true;
  send(2, {8});
  EXPECT_TRUE(failed().empty());
  run_stream();
  EXPECT_EQ(ended(), steps{1});
  EXPECT_EQ(failed(), steps{2});
}

TEST_F(executor_actor_test, what_has_no_callback_is_handed_to_the_stream_when_the_executor_ends) {
  stream.refuses = true;
  send(1, {7});
  end_executor();
  device.real.run_all("compute");
  EXPECT_EQ(model.steps.at(0).requests, std::vector<request_id>{{7}});
}

// Guards: a model that throws after it has enqueued something ends the executor, not the memory its work reads.
TEST_F(executor_actor_test, what_a_throwing_model_left_on_the_stream_keeps_its_batch) {
  model.throws = true;
  send(1, {7});
  executor = executor_actor{};
  device.real.run_all("compute");
  EXPECT_EQ(model.steps.at(0).requests, std::vector<request_id>{{7}});
}

TEST_F(executor_actor_test, memory_goes_and_comes_back) {
  EXPECT_EQ(change({true, false, true}).code, errc::none);
  EXPECT_EQ(device.info().free_device_bytes, 4096U);
  EXPECT_TRUE(model.weight_calls.empty());
  EXPECT_EQ(change({true, true, true}).code, errc::none) << "the pool is back already";
  EXPECT_EQ(model.weight_calls, std::vector<std::string>{"release"});
  EXPECT_EQ(change({false, true, false}).code, errc::none);
  EXPECT_EQ(device.info().free_device_bytes, 4096U);
  EXPECT_EQ(change({false, true, true}).code, errc::none);
  EXPECT_EQ(device.info().free_device_bytes, 4096U - 1024U);
  EXPECT_EQ(model.weight_calls, (std::vector<std::string>{"release", "restore"}));
  send(1, {7});
  run_stream();
  EXPECT_EQ(ended(), steps{1});
}

TEST_F(executor_actor_test, errors_of_memory_come_back_and_can_be_tried_again) {
  model.refuses = true;
  auto answer = change({true, true, true});
  EXPECT_EQ(answer.code, errc::model_failed);
  EXPECT_NE(answer.message.find("release failed: no luck"), std::string::npos) << answer.message;
  EXPECT_EQ(change({true, true, true}).code, errc::none);

  auto other = device.allocate_device(3500).value();
  answer = change({false, true, true});
  EXPECT_EQ(answer.code, errc::device_failed);
  EXPECT_NE(answer.message.find("restore failed"), std::string::npos) << answer.message;
  other = gpu::device_memory();
  EXPECT_EQ(change({false, true, true}).code, errc::none);
  EXPECT_EQ(model.weight_calls, (std::vector<std::string>{"release", "restore"}));
}

TEST_F(executor_actor_test, memory_is_not_given_back_under_a_step_and_no_step_runs_without_it) {
  send(1, {7});
  EXPECT_EQ(change({true, true, true}).code, errc::device_failed);
  EXPECT_EQ(device.info().free_device_bytes, 4096U - 1024U);
  run_stream();
  ASSERT_EQ(change({true, false, true}).code, errc::none);
  send(2, {7});
  run_stream();
  EXPECT_EQ(model.steps.size(), 1U);
  EXPECT_EQ(failed(), steps{2});
  expect_failure(0, errc::device_failed, "given back");
}

}  // namespace
}  // namespace sluice::testing
