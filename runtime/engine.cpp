// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/engine.hpp>

#include <cstdlib>
#include <utility>

#include <spdlog/spdlog.h>

#include <sluice/actors/executor/executor_actor.hpp>
#include <sluice/actors/preemption/preemption_handler_actor.hpp>
#include <sluice/actors/scheduler/host_tier_index.hpp>
#include <sluice/actors/transfer/load_actor.hpp>
#include <sluice/actors/transfer/store_actor.hpp>
#include <sluice/runtime/supervisor_actor.hpp>

namespace sluice::inline v0 {

namespace {

std::unique_ptr<caf::actor_system_config> make_config(std::size_t num_threads) {
  compat::init_types<caf::id_block::sluice>();
  auto config = std::make_unique<caf::actor_system_config>();
  compat::register_types<caf::id_block::sluice>(*config);
  compat::register_error_codes<errc>(*config);
  compat::configure_scheduler(*config, num_threads);
  return config;
}

/// Moves `made` into `target`, or returns its error.
template <class T>
tl::expected<void, gpu::error> put(tl::expected<T, gpu::error> made, T& target) {
  if (!made) return tl::unexpected(made.error());
  target = std::move(*made);
  return {};
}

}  // namespace

tl::expected<std::unique_ptr<engine>, error> engine::make(const engine_plan& plan, const runtime_options& options,
                                                          engine_parts parts) {
  std::unique_ptr<engine> made(new engine(plan, std::move(parts)));
  const compat::thread_visit visit;  // the caller may end on another thread than the one that stops
  if (auto allocated = made->allocate(); !allocated)
    return tl::unexpected(error{errc::insufficient_memory, to_string(allocated.error())});
  made->config_ = make_config(options.num_actor_threads);
  made->system_ = std::make_unique<caf::actor_system>(*made->config_);
  made->spawn(options);
  return made;
}

engine::engine(const engine_plan& plan, engine_parts parts) : plan_(plan), parts_(std::move(parts)) {}

engine::~engine() {
  if (!system_) return;
  const compat::thread_visit visit;
  compat::anon_mail(stop_watching{}).send(supervisor_);
  const auto reason = caf::make_error(caf::exit_reason::user_shutdown);
  compat::send_exit(scheduler_, reason);
  compat::send_exit(actors_.handler, reason);
  compat::send_exit(actors_.executor, reason);
  compat::send_exit(actors_.loads, reason);
  compat::send_exit(actors_.stores, reason);
  system_->await_all_actors_done();
  // Nobody enqueues any more. Ending the streams runs what they hold; callbacks still find a living system.
  compute_.reset();
  load_.reset();
  store_.reset();
  scheduler_ = scheduler_actor{};
  actors_ = connect_engine{};
  supervisor_ = supervisor_actor{};
  system_.reset();
}

tl::expected<void, gpu::error> engine::allocate() {
  auto& device = *parts_.device;
  return put(device.allocate_device(plan_.pool_bytes), pool_)
      .and_then([&] { return put(device.allocate_host(plan_.tier_bytes), tier_); })
      .and_then([&] { return put(device.make_stream("compute"), compute_); })
      .and_then([&] { return put(device.make_stream("load"), load_); })
      .and_then([&] { return put(device.make_stream("store"), store_); })
      .map([&] { parts_.model->bind(memory().device); });
}

transfer_memory engine::memory() const {
  const auto bytes_per_block = plan_.scheduler.kv.bytes_per_block;
  return {{plan_.scheduler.num_device_blocks, {{{pool_.view().data, bytes_per_block, bytes_per_block}}}},
          tier_.view(), bytes_per_block, plan_.scheduler.blocks_per_chunk};
}

void engine::spawn(const runtime_options& options) {
  std::unique_ptr<tier_index> tier;
  if (const auto num_slots = plan_.scheduler.num_host_slots; num_slots > 0)
    tier = std::make_unique<host_tier_index>(num_slots, make_lru_policy(num_slots));
  preemption_options preemption;
  preemption.flush_timeout = options.flush_timeout;
  const auto boundary_timeout = preemption.query_timeout + preemption.flush_timeout + std::chrono::seconds{5};
  auto core = std::make_unique<scheduler_core>(plan_.scheduler, std::move(tier));
  parts_.status->publish(core->numbers());
  scheduler_ = compat::spawn<scheduler_actor, scheduler_actor_state>(*system_, std::move(core), boundary_timeout,
                                                                     make_hooks(options.invariant_policy));
  auto* device = parts_.device.get();
  actors_.loads = compat::spawn<load_actor, load_actor_state>(*system_, scheduler_, stream_lease{device, load_.get()},
                                                              memory());
  actors_.stores = compat::spawn<store_actor, store_actor_state>(*system_, scheduler_,
                                                                 stream_lease{device, store_.get()}, memory());
  actors_.handler = compat::spawn<preemption_handler, preemption_handler_state>(*system_, actors_.loads,
                                                                                actors_.stores, preemption);
  actors_.executor = compat::spawn<executor_actor, executor_actor_state>(*system_, scheduler_, parts_.model.get(),
                                                                         stream_lease{device, compute_.get()});
  supervisor_ = compat::spawn<supervisor_actor, supervisor_actor_state>(*system_, scheduler_, actors_,
                                                                        parts_.on_failure);
  compat::anon_mail(connect_engine{actors_}).send(scheduler_);
}

scheduler_hooks engine::make_hooks(on_invariant policy) const {
  scheduler_hooks hooks;
  hooks.on_progress = [status = parts_.status](const scheduler_core& core) { status->publish(core.numbers()); };
  hooks.on_violation = [policy](const invariant_violation& violation) {
    spdlog::error("invariant violated in step {}: {}", violation.step.value, violation.what);
    if (policy == on_invariant::abort_process) std::abort();
  };
  return hooks;
}

}  // namespace sluice::inline v0
