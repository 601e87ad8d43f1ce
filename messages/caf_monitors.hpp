// SPDX-License-Identifier: Apache-2.0
//
// Watching other actors, the same on CAF 0.17.6 and CAF 1.x. Part of caf_compat.hpp.
#pragma once

#include <caf/all.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include <sluice/messages/caf_inspect.hpp>

namespace sluice::inline v0 {
namespace compat {

// The actors that one actor watches; a member of its state, made with `self`. At most one watch per watched actor: a
// second `add` replaces the callback. A callback runs in the watching actor, once, and never after `remove`. `reason`
// is empty after a normal end. The watching actor must not set a down handler of its own.
class monitors {
 public:
  template <class Self>
  explicit monitors(Self* self) : self_(self) {
#if !SLUICE_CAF_1
    self->set_down_handler([this](caf::down_msg& msg) {
      auto found = watched_.extract(msg.source);  // the callback may add and remove
      if (!found.empty()) found.mapped()(msg.reason);
    });
#endif
  }

  monitors(const monitors&) = delete;
  monitors& operator=(const monitors&) = delete;

  template <class Handle, class Callback>
  void add(const Handle& whom, Callback callback) {
    remove(whom);
    auto key = whom.address();
#if SLUICE_CAF_1
    watched_[key] = self_->monitor(whom, [this, key, callback](const caf::error& reason) mutable {
      watched_.erase(key);
      callback(reason);
    });
#else
    watched_[key] = std::move(callback);
    self_->monitor(whom);
#endif
  }

  template <class Handle>
  void remove(const Handle& whom) {
    auto found = watched_.extract(whom.address());
    if (found.empty()) return;
#if SLUICE_CAF_1
    found.mapped().dispose();
#else
    self_->demonitor(found.key());
#endif
  }

  std::size_t size() const { return watched_.size(); }

 private:
  caf::scheduled_actor* self_;
#if SLUICE_CAF_1
  std::map<caf::actor_addr, caf::disposable> watched_;
#else
  std::map<caf::actor_addr, std::function<void(const caf::error&)> > watched_;
#endif
};

}  // namespace compat
}  // namespace sluice::inline v0
