// SPDX-License-Identifier: Apache-2.0
//
// Every difference between CAF 0.17.6 and CAF 1.x (1.0.2 and later); the rest of the project is written in one idiom
// on top of it and of the two headers it includes. Unless a line says otherwise, a function may be called only
// by the actor it is given, from inside one of that actor's handlers.
#pragma once

#include <caf/all.hpp>
#include <caf/logger.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/messages/caf_inspect.hpp>
#include <sluice/messages/caf_monitors.hpp>

#if SLUICE_CAF_1
#include <caf/init_global_meta_objects.hpp>
#endif

namespace sluice::inline v0 {
namespace compat {

#if !SLUICE_CAF_1
namespace detail {

template <class Signature>
struct to_mpi;

template <class... Rs, class... As>
struct to_mpi<caf::result<Rs...>(As...)> {
  using type = typename caf::replies_to<As...>::template with<Rs...>;
};

}  // namespace detail
#endif

// -- configuration --

// Both must have been called for every block before the first actor_system: `init_types` before the config object is
// made (main thread, before any other CAF call), `register_types` on it. Each does nothing on the other version.
// CAF's command line and config file stay unread as long as nobody calls actor_system_config::parse; do not.
template <class... Blocks>
void init_types() {
#if SLUICE_CAF_1
  [[maybe_unused]] static const bool once = [] {
    (caf::init_global_meta_objects<Blocks>(), ...);
    caf::core::init_global_meta_objects();
    return true;
  }();
#endif
}

template <class... Blocks>
void register_types([[maybe_unused]] caf::actor_system_config& cfg) {
#if !SLUICE_CAF_1
  (cfg.add_message_types<Blocks>(), ...);
#endif
}

// Idle workers sleep ("sharing"); the default policy polls. Call before the actor_system is made.
inline void configure_scheduler(caf::actor_system_config& cfg, std::size_t num_threads) {
#if SLUICE_CAF_1
  cfg.set("caf.scheduler.policy", "sharing").set("caf.scheduler.max-threads", num_threads);
#else
  cfg.set("scheduler.policy", caf::atom("sharing")).set("scheduler.max-threads", num_threads);
#endif
}

// -- interfaces and actors --

// typed_actor<caf::result<R>(A...), ...>; caf::result<void> for messages without an answer.
#if SLUICE_CAF_1
template <class... Signatures>
using typed_actor = caf::typed_actor<Signatures...>;
#else
template <class... Signatures>
using typed_actor = caf::typed_actor<typename detail::to_mpi<Signatures>::type...>;
#endif

namespace detail {

// The state lives from spawn until the actor ends, not until the last handle goes.
template <class Handle, class State>
class state_actor : public Handle::base {
 public:
  using super = typename Handle::base;

  template <class... Args>
  explicit state_actor(caf::actor_config& cfg, Args&&... args) : super(cfg) {
    this->set_exception_handler([this](std::exception_ptr& thrown) -> caf::error { return on_exception(thrown); });
#if !SLUICE_CAF_1
    this->set_error_handler([](caf::error&){});  // see make_behavior
#endif
    state_.emplace(static_cast<typename Handle::pointer>(this), std::forward<Args>(args)...);
  }

  const char* name() const override { return State::name; }
  void on_exit() override { state_.reset(); }

 protected:
  typename super::behavior_type make_behavior() override {
    auto behavior = state_->make_behavior();
#if SLUICE_CAF_1
    // What a handler throws or answers to a plain send comes back as a bare error and would end the innocent sender.
    return {caf::unsafe_behavior_init, caf::message_handler{[](const caf::error&) {}}.or_else(behavior.unbox())};
#else
    return behavior;
#endif
  }

 private:
  caf::error on_exception(std::exception_ptr& thrown) {
    std::string text = "unknown exception";
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      text = e.what();
    } catch (...) {
    }
    auto result = caf::make_error(caf::sec::runtime_error, std::move(text));
#if !SLUICE_CAF_1
    // 1.x answers the request by itself.
    if (auto* current = this->current_mailbox_element(); current != nullptr && current->mid.is_request())
      this->make_response_promise().deliver(result);
#endif
    return result;
  }

  std::optional<State> state_;
};

}  // namespace detail

// A thread that CAF did not start keeps a reference to the logger of the actor system it last worked with, and the
// system's destructor waits for that. Stands around such work; inside an actor it does nothing.
class thread_visit {
 public:
  thread_visit() = default;
  thread_visit(const thread_visit&) = delete;
  thread_visit& operator=(const thread_visit&) = delete;
  ~thread_visit() {
    if (is_inside_) return;
#if SLUICE_CAF_1
    caf::logger::current_logger(nullptr);
#else
    caf::logger::set_current_actor_system(nullptr);
#endif
  }

 private:
  bool is_inside_ = caf::logger::current_logger() != nullptr;
};

// Spawns an actor around a plain struct with `static constexpr const char* name`, a constructor
// (Handle::pointer self, Args...) and `Handle::behavior_type make_behavior()`. The constructor runs in the caller;
// what it throws leaves spawn. An exception out of a handler ends the actor with sec::runtime_error and its text, and
// answers the request. Move-only arguments are fine. Any thread.
template <class Handle, class State, class... Args>
Handle spawn(caf::actor_system& system, Args&&... args) {
  const thread_visit visit;
  return caf::actor_cast<Handle>(system.spawn<detail::state_actor<Handle, State>>(std::forward<Args>(args)...));
}

// The sender of the current message; null when it was anonymous. The type is the caller's knowledge, not checked.
template <class Handle, class Self>
Handle sender_as(Self* self) {
  return caf::actor_cast<Handle>(self->current_sender());
}

// Ends `whom` with `reason` once the message is reached; `exit_reason::kill` cannot be caught. Any thread.
template <class Handle>
void send_exit(const Handle& whom, caf::error reason) {
  if (!whom) return;
  auto* target = caf::actor_cast<caf::abstract_actor*>(whom);
  caf::exit_msg msg{target->address(), std::move(reason)};
#if SLUICE_CAF_1
  target->enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(), std::move(msg)), nullptr);
#else
  target->enqueue(nullptr, caf::make_message_id(), caf::make_message(std::move(msg)), nullptr);
#endif
}

// -- mail(self, msg).send(to) | .delay(d).send(to) | .request(to, timeout).then(on_value, on_error) --

namespace detail {

#if SLUICE_CAF_1
// A request that is bounced carries the receiver's exit reason, which may even be empty; nobody has sent it.
template <class Native>
struct response_handle {
  caf::scheduled_actor* self;
  Native native;

  template <class OnValue, class OnError>
  void then(OnValue on_value, OnError on_error) && {
    std::move(native).then(std::move(on_value), [me = self, on_error = std::move(on_error)](caf::error& err) mutable {
      if (me->current_sender() == nullptr && err != caf::sec::request_timeout)
        err = caf::make_error(caf::sec::request_receiver_down);
      on_error(err);
    });
  }
};
#endif

// Self is void for anonymous mail.
template <class Self, class Message>
struct mail_t {
  Self* self;
  Message msg;
  std::optional<std::chrono::nanoseconds> after{};

  mail_t delay(std::chrono::nanoseconds d) && { return {self, std::move(msg), d}; }

  template <class Handle>
  void send(const Handle& to) && {
#if SLUICE_CAF_1
    auto mail = [this] {
      if constexpr (std::is_void_v<Self>)
        return caf::anon_mail(std::move(msg));
      else
        return self->mail(std::move(msg));
    };
    if (after)
      mail().delay(*after).send(to);
    else
      mail().send(to);
#else
    if constexpr (std::is_void_v<Self>) {
      if (after)
        caf::delayed_anon_send(to, *after, std::move(msg));
      else
        caf::anon_send(to, std::move(msg));
    } else {
      if (after)
        self->delayed_send(to, *after, std::move(msg));
      else
        self->send(to, std::move(msg));
    }
#endif
  }

  template <class Handle>
  [[nodiscard]] auto request(const Handle& to, std::chrono::nanoseconds timeout) && {
#if SLUICE_CAF_1
    auto native = self->mail(std::move(msg)).request(to, timeout);
    return response_handle<decltype(native)>{self, std::move(native)};
#else
    return self->request(to, timeout, std::move(msg));
#endif
  }
};

}  // namespace detail

template <class Self, class Message>
[[nodiscard]] detail::mail_t<Self, std::decay_t<Message>> mail(Self* self, Message&& msg) {
  return {self, std::forward<Message>(msg)};
}

// Any thread.
template <class Message>
[[nodiscard]] detail::mail_t<void, std::decay_t<Message>> anon_mail(Message&& msg) {
  return {nullptr, std::forward<Message>(msg)};
}

// -- answers that come later --

template <class R>
using response_promise = caf::typed_response_promise<R>;

// Takes the answer of the current message over; the handler returns it (or any result<R>).
template <class R, class Self>
response_promise<R> make_response_promise(Self* self) {
  return self->template make_response_promise<R>();
}

// Answers once; later calls do nothing. deliver(promise) is for R = void.
template <class R>
requires(!std::is_void_v<R>) void deliver(response_promise<R>& promise, std::type_identity_t<R> value) {
  promise.deliver(std::move(value));
}

inline void deliver(response_promise<void>& promise) {
#if SLUICE_CAF_1
  promise.deliver();
#else
  static_cast<caf::response_promise&>(promise).deliver(caf::unit);
#endif
}

template <class R>
void deliver_error(response_promise<R>& promise, caf::error reason) {
  promise.deliver(std::move(reason));
}

// -- errors --

// `code` must not be the enumerator with value 0. Every context type needs a type id.
template <class Enum, class... Ts>
caf::error make_error(Enum code, Ts&&... context) {
  return caf::make_error(code, std::forward<Ts>(context)...);
}

// Gives registered codes their to_string in rendered errors (0.17; 1.x needs nothing).
template <class Enum>
void register_error_codes([[maybe_unused]] caf::actor_system_config& cfg) {
#if !SLUICE_CAF_1
  cfg.add_error_category(caf::detail::error_factory<Enum>::category,
                         [](std::uint8_t code, caf::atom_value category, const caf::message& context) {
                           auto text = to_string(category) + ": " + std::string{to_string(static_cast<Enum>(code))};
                           return context.empty() ? text : text + " " + to_string(context);
                         });
#endif
}

// The code, or nothing for an empty error and for errors of another kind (CAF's own, for example).
template <class Enum>
std::optional<Enum> code_of(const caf::error& err) {
#if SLUICE_CAF_1
  if (err && err.category() == caf::type_id_v<Enum>) return static_cast<Enum>(err.code());
#else
  if (err && err.category() == caf::detail::error_factory<Enum>::category) return static_cast<Enum>(err.code());
#endif
  return std::nullopt;
}

// The first context value of type T that was given to make_error; T{} when there is none.
template <class T>
T context_of(const caf::error& err) {
  if (err)
    for (std::size_t i = 0; i < err.context().size(); ++i)
      if (err.context().template match_element<T>(i)) return err.context().template get_as<T>(i);
  return T{};
}

// What a request ends with when no answer came in time.
inline bool is_timeout(const caf::error& err) { return err == caf::sec::request_timeout; }

// What a request ends with when the receiver was gone, or ended or threw before it answered. One exception: when it
// ended with the promise in its hands, 0.17 says nothing and the request times out.
inline bool is_down(const caf::error& err) {
#if SLUICE_CAF_1
  if (err == caf::sec::broken_promise) return true;
#endif
  return err == caf::sec::request_receiver_down || err == caf::sec::runtime_error;
}

}  // namespace compat
}  // namespace sluice::inline v0
