// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// Asks the scheduler one question for somebody outside the actors, calls back once with the answer, or with nothing
/// when the scheduler died or gave none in time, and quits.
template <class Query, class Answer>
struct question_actor_state {
  static constexpr const char* name = "question";
  using callback = std::function<void(const std::optional<Answer>&)>;

  question_actor_state(supervisor_actor::pointer self_pointer, scheduler_actor scheduler, Query query,
                       std::chrono::nanoseconds timeout, callback done)
      : self(self_pointer), on_answer(std::move(done)) {
    monitors.add(scheduler, [this](const caf::error&) { end(std::nullopt); });
    compat::mail(self, std::move(query))
        .request(scheduler, timeout)
        .then([this](const Answer& answer) { end(answer); }, [this](const caf::error&) { end(std::nullopt); });
  }

  supervisor_actor::behavior_type make_behavior() {
    return {[](const stop_watching&) {}};
  }

  void end(const std::optional<Answer>& answer) {
    if (auto done = std::exchange(on_answer, nullptr)) done(answer);
    self->quit();
  }

  supervisor_actor::pointer self;
  callback on_answer;
  compat::monitors monitors{self};
};

}  // namespace sluice::inline v0
