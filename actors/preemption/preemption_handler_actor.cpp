// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/preemption/preemption_handler_actor.hpp>

#include <utility>

namespace sluice::inline v0 {

preemption_handler_state::preemption_handler_state(preemption_handler::pointer self_pointer, load_actor load_handle,
                                                   store_actor store_handle, preemption_options handler_options)
    : self(self_pointer), loads(std::move(load_handle)), stores(std::move(store_handle)), options(handler_options) {}

preemption_handler::behavior_type preemption_handler_state::make_behavior() {
  return {
      [this](const step_boundary& boundary) -> caf::result<boundary_cleared> {
        auto promise = compat::make_response_promise<boundary_cleared>(self);
        compat::mail(self, current_step_loads{boundary.step})
            .request(loads, options.query_timeout)
            .then(
                [this, boundary, promise](const step_load_ids& current) mutable {
                  const auto needed = make_boundary_flush(boundary, current.ids);
                  if (needed.older_loads.empty())
                    flush(needed, boundary.step, promise);
                  else
                    compat::deliver_error(promise, compat::make_error(errc::older_load_pending, needed.older_loads));
                },
                [promise](const caf::error&) mutable {
                  compat::deliver_error(promise,
                                        compat::make_error(errc::transfer_actor_lost, std::vector<transfer_id>{}));
                });
        return promise;
      },
  };
}

void preemption_handler_state::flush(const boundary_flush& needed, step_id step,
                                     compat::response_promise<boundary_cleared> promise) {
  const boundary_cleared cleared{step, static_cast<std::uint32_t>(needed.stores.size()), needed.num_excluded_loads};
  if (needed.stores.empty()) return compat::deliver(promise, cleared);
  compat::mail(self, flush_stores{step, needed.stores})
      .request(stores, options.flush_timeout)
      .then([promise, cleared](const stores_flushed&) mutable { compat::deliver(promise, cleared); },
            [promise, ids = needed.stores](const caf::error& reason) mutable {
              const auto code = compat::is_timeout(reason) ? errc::flush_timed_out : errc::transfer_actor_lost;
              compat::deliver_error(promise, compat::make_error(code, ids));
            });
}

}  // namespace sluice::inline v0
