// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <sluice/actors/preemption/boundary_flush.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

struct preemption_options {
  std::chrono::nanoseconds flush_timeout = std::chrono::seconds{10};
  std::chrono::nanoseconds query_timeout = std::chrono::seconds{10};  ///< for an answer that waits for nothing
};

/// The preemption handler: asks the load actor which loads belong to the step, subtracts them, and has the store actor
/// flush what remains. Asking twice for the same step has the effect of once.
struct preemption_handler_state {
  static constexpr const char* name = "preemption";

  preemption_handler_state(preemption_handler::pointer self, load_actor loads, store_actor stores,
                           preemption_options options);
  preemption_handler::behavior_type make_behavior();

  /// A boundary whose stores are being flushed.
  struct open_flush {
    boundary_cleared cleared;
    std::vector<transfer_id> stores;
    compat::response_promise<boundary_cleared> promise;
  };

  void flush(const boundary_flush& flush, step_id step, compat::response_promise<boundary_cleared> promise);
  std::optional<open_flush> take_flush(std::uint64_t ticket);
  void fail_flush(std::uint64_t ticket, errc code);
  void lose_flushes();

  preemption_handler::pointer self;
  load_actor loads;
  store_actor stores;
  preemption_options options;
  std::map<std::uint64_t, open_flush> flushing;  ///< by ticket; one, unless somebody asks twice
  std::uint64_t last_ticket = 0;
};

}  // namespace sluice::inline v0
