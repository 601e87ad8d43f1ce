// SPDX-License-Identifier: Apache-2.0
//
// A CAF actor system without threads and without real time: the test decides which actor takes its next message, and
// when the clock moves. CAF 0.17.6 only (the main sources build on 1.x; these tests run on the packaged version).
#pragma once

#include <sluice/messages/caf_compat.hpp>

#if SLUICE_CAF_1
#error "deterministic_system needs CAF 0.17; build the protocol tests against the packaged version"
#endif

#include <caf/scheduler/test_coordinator.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::testing {

// One test owns one system and uses it from one thread. All actors that it did not end itself are killed when it goes.
// A new actor first runs (make_behavior) with its first message, or in run_all.
class deterministic_system {
 public:
  using configure_fn = std::function<void(caf::actor_system_config&)>;

  explicit deterministic_system(configure_fn configure = {})
      : cfg_{std::move(configure)},
        system_{cfg_},
        scheduler_{dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())} {
    system_.await_actors_before_shutdown(false);
    // Zero means "no timeout" inside CAF.
    scheduler_.clock().current_time += std::chrono::seconds{1};
  }

  deterministic_system(const deterministic_system&) = delete;
  deterministic_system& operator=(const deterministic_system&) = delete;

  ~deterministic_system() { end_all(); }

  // Kills all actors that are left, for owners of what the actors use. Nothing may be done with the system afterwards.
  void end_all() {
    before_turn = [] {};
    for (auto& actor : spawned_)
      if (auto strong = caf::actor_cast<caf::strong_actor_ptr>(actor))
        compat::send_exit(strong, caf::make_error(caf::exit_reason::kill));
    // A timer that re-arms itself would keep CAF's own shutdown busy for ever.
    for (std::size_t i = 0; i < max_steps && step(); ++i) scheduler_.clock().cancel_all();
    scheduler_.clock().cancel_all();
    while (!scheduler_.jobs.empty()) {
      caf::intrusive_ptr_release(scheduler_.jobs.front());
      scheduler_.jobs.pop_front();
    }
  }

  caf::actor_system& system() { return system_; }

  template <class Handle, class State, class... Args>
  Handle spawn(Args&&... args) {
    return track(compat::spawn<Handle, State>(system_, std::forward<Args>(args)...));
  }

  // For actors that code under test spawned: kills them at the end, too.
  template <class Handle>
  Handle track(Handle actor) {
    spawned_.push_back(caf::actor_cast<caf::weak_actor_ptr>(actor));
    return actor;
  }

  // -- what waits
  // ------------------------------------------------------------------------------------------------------

  template <class Handle>
  bool has_mail(const Handle& actor) {
    return next_of(actor) != nullptr;
  }

  // A copy of the next message, if it is a Msg.
  template <class Msg, class Handle>
  std::optional<Msg> peek(const Handle& actor) {
    auto* next = next_of(actor);
    if (next == nullptr || !next->content().template match_elements<Msg>()) return std::nullopt;
    return next->content().template get_as<Msg>(0);
  }

  template <class Handle>
  std::size_t num_pending(const Handle& actor) {
    auto* ptr = scheduled(actor);
    return ptr == nullptr ? 0 : num_in_mailbox(*ptr);
  }

  // Undelivered messages of all actors.
  std::size_t num_pending() {
    std::size_t result = 0;
    for (auto* job : scheduler_.jobs)
      if (auto* actor = dynamic_cast<caf::scheduled_actor*>(job)) result += num_in_mailbox(*actor);
    return result;
  }

  // For failure messages: type and content of the next message.
  template <class Handle>
  std::string describe_next(const Handle& actor) {
    auto* next = next_of(actor);
    if (next == nullptr) return "nothing";
    return (next->mid.is_response() ? "a response " : "") + caf::deep_to_string(next->content());
  }

  // -- one message
  // -----------------------------------------------------------------------------------------------------

  // Lets `actor` handle exactly its next message, which must be a Msg and no response; else the test fails and nothing
  // runs. caf::down_msg and caf::exit_msg count as messages.
  template <class Msg, class Handle>
  bool deliver(const Handle& actor, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    auto* next = next_of(actor);
    if (next == nullptr || next->mid.is_response() || !next->content().template match_elements<Msg>())
      return refuse(actor, typeid(Msg).name(), file, line);
    return step(actor);
  }

  // The same for the answer to a request of `actor`, be it a value, an error or a timeout.
  template <class Handle>
  bool deliver_response(const Handle& actor, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    auto* next = next_of(actor);
    if (next == nullptr || !next->mid.is_response()) return refuse(actor, "a response", file, line);
    return step(actor);
  }

  // Ends the actor before it handles its next message, as an exception in that handler would.
  template <class Handle>
  void kill(const Handle& actor) {
    auto* target = caf::actor_cast<caf::abstract_actor*>(actor);
    caf::exit_msg exit{target->address(), caf::make_error(caf::exit_reason::kill)};
    target->enqueue(nullptr, caf::make_message_id(caf::message_priority::high), caf::make_message(std::move(exit)),
                    nullptr);
  }

  // -- many messages
  // ---------------------------------------------------------------------------------------------------

  // Runs actors, first come first served, until none has anything to do; returns the number of turns taken.
  std::size_t run_all() {
    std::size_t num_steps = 0;
    while (step())
      if (++num_steps == max_steps) {
        ADD_FAILURE() << "actors still busy after " << num_steps << " turns";
        break;
      }
    return num_steps;
  }

  // Runs actors until pred() holds; false when they went idle (or the bound was reached) before.
  template <class Predicate>
  bool run_until(Predicate pred) {
    for (std::size_t i = 0; i < max_steps && !pred(); ++i)
      if (!step()) break;
    return pred();
  }

  // One turn of one of the actors that have something to do, chosen by `nth` (modulo their number, in the order in which
  // they came). False when there is none.
  bool step_nth(std::size_t nth) {
    auto& jobs = scheduler_.jobs;
    if (jobs.empty()) return false;
    const auto chosen = jobs.begin() + static_cast<std::ptrdiff_t>(nth % jobs.size());
    auto* job = *chosen;
    jobs.erase(chosen);
    jobs.push_front(job);
    return step();
  }

  // One turn of the first that is not `actor`. False when nobody else has anything to do.
  template <class Handle>
  bool step_other_than(const Handle& actor) {
    const auto is_other = [slow = static_cast<caf::resumable*>(scheduled(actor))](auto* job) { return job != slow; };
    auto& jobs = scheduler_.jobs;
    const auto found = std::find_if(jobs.begin(), jobs.end(), is_other);
    return found != jobs.end() && step_nth(static_cast<std::size_t>(found - jobs.begin()));
  }

  // Moves the clock; what is due becomes mail, and nothing runs. Returns the number of timers and timeouts that fired.
  std::size_t advance(std::chrono::nanoseconds duration) { return scheduler_.advance_time(duration); }

  // Turns after which run_all and run_until give up.
  static constexpr std::size_t max_steps = 100'000;

  bool has_timer() { return scheduler_.has_pending_timeout(); }

  // Called before every turn of an actor; may look at mailboxes.
  std::function<void()> before_turn = [] {};

 private:
  struct config : caf::actor_system_config {
    explicit config(const configure_fn& configure) {
      if (configure) configure(*this);
      set("scheduler.policy", caf::atom("testing"));
    }
  };

  template <class Handle>
  static caf::scheduled_actor* scheduled(const Handle& actor) {
    return dynamic_cast<caf::scheduled_actor*>(caf::actor_cast<caf::abstract_actor*>(actor));
  }

  template <class Handle>
  static caf::mailbox_element* next_of(const Handle& actor) {
    auto* ptr = scheduled(actor);
    return ptr == nullptr ? nullptr : ptr->peek_at_next_mailbox_element();
  }

  static std::size_t num_in_mailbox(caf::scheduled_actor& actor) {
    // The peek also moves what has just arrived into the queue.
    return actor.peek_at_next_mailbox_element() == nullptr ? 0 : actor.mailbox().queue().total_task_size();
  }

  bool step() {
    before_turn();
    return scheduler_.try_run_once();
  }

  template <class Handle>
  bool step(const Handle& actor) {
    return scheduler_.prioritize(actor) && step();
  }

  template <class Handle>
  bool refuse(const Handle& actor, const std::string& wanted, const char* file, int line) {
    auto* name = scheduled(actor) == nullptr ? "null actor" : scheduled(actor)->name();
    ADD_FAILURE_AT(file, line) << name << ": expected " << wanted << ", next is " << describe_next(actor);
    return false;
  }

  config cfg_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  std::vector<caf::weak_actor_ptr> spawned_;
};

// -- a stand-in for any actor
// ------------------------------------------------------------------------------------------

namespace detail {

template <class In, class Out>
struct recorded {
  std::deque<In> messages;
  std::deque<compat::response_promise<Out>> promises;  // one per message that came as a request
};

template <class Signature>
struct signature_traits;

template <class In, class Out>
struct signature_traits<caf::typed_mpi<caf::detail::type_list<In>, caf::output_tuple<Out>>> {
  using in = In;
  using record = recorded<In, Out>;

  static auto make_handler(caf::scheduled_actor* self, record* log) {
    return [self, log](const In& msg) {
      log->messages.push_back(msg);
      const bool wants_answer = self->current_message_id().is_request();
      auto promise = compat::make_response_promise<Out>(self);
      if (wants_answer) log->promises.push_back(promise);
      return promise;
    };
  }
};

template <class Signatures>
struct probe_records;

template <class... Signatures>
struct probe_records<caf::detail::type_list<Signatures...>> {
  std::tuple<typename signature_traits<Signatures>::record...> records;

  template <class Msg>
  auto& of() {
    return find<Msg, 0>();
  }

  template <class Behavior>
  Behavior make_behavior(caf::scheduled_actor* self) {
    return std::apply(
        [self](auto&... record) { return Behavior{signature_traits<Signatures>::make_handler(self, &record)...}; },
        records);
  }

 private:
  template <class Msg, std::size_t I>
  auto& find() {
    using element = std::tuple_element_t<I, std::tuple<typename signature_traits<Signatures>::in...>>;
    if constexpr (std::is_same_v<element, Msg>)
      return std::get<I>(records);
    else
      return find<Msg, I + 1>();
  }
};

template <class Handle>
struct probe_state {
  using records = probe_records<typename Handle::signatures>;

  static constexpr const char* name = "probe";

  probe_state(typename Handle::pointer self, std::shared_ptr<records> log) : self_(self), log_(std::move(log)) {}

  typename Handle::behavior_type make_behavior() {
    return log_->template make_behavior<typename Handle::behavior_type>(self_);
  }

  typename Handle::pointer self_;
  std::shared_ptr<records> log_;
};

}  // namespace detail

// Stands in for an actor of type Handle (one argument per message): keeps every message that was delivered to it, and
// answers a request, also one of result<void>, only when the test says so.
template <class Handle>
class probe {
 public:
  explicit probe(deterministic_system& system)
      : log_{std::make_shared<typename detail::probe_state<Handle>::records>()},
        handle_{system.spawn<Handle, detail::probe_state<Handle>>(log_)} {}

  const Handle& handle() const { return handle_; }

  // All messages of the type so far, oldest first; the test may clear or pop them.
  template <class Msg>
  std::deque<Msg>& received() {
    return log_->template of<Msg>().messages;
  }

  // Takes the oldest message of the type out of the record; throws when there is none.
  template <class Msg>
  Msg take() {
    auto& messages = received<Msg>();
    if (messages.empty()) throw std::logic_error{"the probe has no such message"};
    auto msg = std::move(messages.front());
    messages.pop_front();
    return msg;
  }

  // Answers the oldest unanswered request of type Msg with a value or a caf::error; false when there is none.
  template <class Msg, class Answer>
  bool answer(Answer&& value) {
    return settle<Msg>([&](auto& promise) {
      if constexpr (std::is_same_v<std::decay_t<Answer>, caf::error>)
        compat::deliver_error(promise, std::forward<Answer>(value));
      else
        compat::deliver(promise, std::forward<Answer>(value));
    });
  }

  // The same for result<void>.
  template <class Msg>
  bool answer() {
    return settle<Msg>([](auto& promise) { compat::deliver(promise); });
  }

 private:
  template <class Msg, class Deliver>
  bool settle(Deliver deliver) {
    auto& promises = log_->template of<Msg>().promises;
    if (promises.empty()) return false;
    auto promise = std::move(promises.front());
    promises.pop_front();
    // The actor still points to the execution unit of its last turn, which is gone.
    static_cast<caf::local_actor*>(caf::actor_cast<caf::abstract_actor*>(handle_))->context(nullptr);
    deliver(promise);
    return true;
  }

  std::shared_ptr<typename detail::probe_state<Handle>::records> log_;
  Handle handle_;
};

}  // namespace sluice::testing
