// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/preemption/preemption_handler_actor.hpp>

#include <utility>

#include <sluice/actors/rules.hpp>

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
                  if (needed.older_loads.empty() || !holds(rule::flush_stores_only))
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
      [this](const load_actor_replaced& message) { loads = message.successor; },
      [this](const store_actor_replaced& message) {
        stores = message.successor;
        lose_flushes();
      },
  };
}

void preemption_handler_state::flush(const boundary_flush& needed, step_id step,
                                     compat::response_promise<boundary_cleared> promise) {
  const boundary_cleared cleared{step, static_cast<std::uint32_t>(needed.stores.size()), needed.num_excluded_loads};
  if (needed.stores.empty()) return compat::deliver(promise, cleared);
  const auto ticket = ++last_ticket;
  flushing.emplace(ticket, open_flush{cleared, needed.stores, std::move(promise)});
  compat::mail(self, flush_stores{step, needed.stores})
      .request(stores, options.flush_timeout)
      .then(
          [this, ticket](const stores_flushed&) {
            if (auto open = take_flush(ticket)) compat::deliver(open->promise, open->cleared);
          },
          [this, ticket](const caf::error& reason) {
            fail_flush(ticket, compat::is_timeout(reason) ? errc::flush_timed_out : errc::transfer_actor_lost);
          });
}

/// Nothing when it was answered already.
std::optional<preemption_handler_state::open_flush> preemption_handler_state::take_flush(std::uint64_t ticket) {
  auto found = flushing.extract(ticket);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

void preemption_handler_state::fail_flush(std::uint64_t ticket, errc code) {
  if (auto open = take_flush(ticket)) compat::deliver_error(open->promise, compat::make_error(code, open->stores));
}

/// Their promises died with the store actor, and nobody says so.
void preemption_handler_state::lose_flushes() {
  while (!flushing.empty()) fail_flush(flushing.begin()->first, errc::transfer_actor_lost);
}

}  // namespace sluice::inline v0
