// SPDX-License-Identifier: Apache-2.0
//
// The fixture's commands: each is sent by an actor of its own, which keeps the answer.
#include "test_engine.hpp"

namespace sluice::testing {

namespace {

/// Sends one command from its constructor.
using asker = compat::typed_actor<caf::result<void>(client_gone)>;
template <class Command, class Answer>
struct asker_state {
  static constexpr const char* name = "asker";
  asker_state(asker::pointer self, scheduler_actor scheduler, Command message,
              std::shared_ptr<std::optional<Answer>> answer) {
    compat::mail(self, message)
        .request(scheduler, std::chrono::hours{24})
        .then([answer](const Answer& report) { *answer = report; },
              [](const caf::error&) { ADD_FAILURE() << "a command was answered with an error"; });
  }
  asker::behavior_type make_behavior() {
    return {[](const client_gone&) {}};
  }
};

template <class Command, class Answer>
void ask(test_engine& engine, Command command, std::shared_ptr<std::optional<Answer>>& answer) {
  answer = std::make_shared<std::optional<Answer>>();
  engine.system.spawn<asker, asker_state<Command, Answer>>(engine.scheduler, command, answer);
}

struct boundary_asker_state {
  static constexpr const char* name = "boundary asker";
  boundary_asker_state(asker::pointer self, preemption_handler handler, step_boundary boundary,
                       std::shared_ptr<std::optional<errc>> answer) {
    compat::mail(self, std::move(boundary))
        .request(handler, std::chrono::hours{24})
        .then([answer](const boundary_cleared&) { *answer = errc::none; },
              [answer](const caf::error& reason) {
                *answer = compat::code_of<errc>(reason).value_or(errc::transfer_actor_lost);
              });
  }
  asker::behavior_type make_behavior() {
    return {[](const client_gone&) {}};
  }
};

}  // namespace

void test_engine::post_reset(bool reset_running_requests, bool reset_external) {
  post(reset_prefix_cache{reset_running_requests, reset_external, true, {}});
}

void test_engine::post(reset_prefix_cache command) { ask(*this, command, last_reset); }
void test_engine::post(pause_engine command) { ask(*this, command, last_control); }
void test_engine::post(resume_engine command) { ask(*this, command, last_control); }
void test_engine::post(sleep_engine command) { ask(*this, command, last_control); }
void test_engine::post(wake_engine command) { ask(*this, command, last_control); }

void test_engine::post(step_boundary boundary) {
  last_boundary = std::make_shared<std::optional<errc>>();
  system.spawn<asker, boundary_asker_state>(handler, std::move(boundary), last_boundary);
}

}  // namespace sluice::testing
