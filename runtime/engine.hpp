// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <caf/actor_system.hpp>
#include <tl/expected.hpp>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/scheduler/scheduler_actor.hpp>
#include <sluice/actors/transfer/transfer_memory.hpp>
#include <sluice/gpu/device.hpp>
#include <sluice/messages/interfaces.hpp>
#include <sluice/runtime/engine_plan.hpp>
#include <sluice/runtime/engine_status.hpp>
#include <sluice/runtime/options.hpp>

namespace sluice::inline v0 {

/// What an engine is made of besides its options.
struct engine_parts {
  std::unique_ptr<gpu::device> device;
  std::unique_ptr<model_executor> model;
  std::shared_ptr<engine_status> status;
  std::function<void(const error&)> on_failure;  ///< an actor died; on an actor thread, once
};

/// Memory, streams and actors of one runtime, in the order in which they must be made and destroyed.
class engine {
 public:
  /// Errors: device_failed, insufficient_memory.
  static tl::expected<std::unique_ptr<engine>, error> make(const engine_plan& plan, const runtime_options& options,
                                                           engine_parts parts);

  /// Ends the actors, then the streams, which run what they hold; blocks until then. An engine whose transfers do not
  /// end is to be leaked instead.
  ~engine();

  caf::actor_system& system() { return *system_; }
  const scheduler_actor& scheduler() const { return scheduler_; }

 private:
  engine(const engine_plan& plan, engine_parts parts);

  tl::expected<void, gpu::error> allocate();
  void spawn(const runtime_options& options);
  scheduler_hooks make_hooks(on_invariant policy) const;
  transfer_memory memory() const;

  engine_plan plan_;
  engine_parts parts_;
  gpu::device_memory pool_;
  gpu::host_memory tier_;
  std::unique_ptr<gpu::stream> compute_, load_, store_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  scheduler_actor scheduler_;
  connect_engine actors_;
  supervisor_actor supervisor_;
};

}  // namespace sluice::inline v0
