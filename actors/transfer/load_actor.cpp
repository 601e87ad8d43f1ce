// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/transfer/load_actor.hpp>

#include <utility>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

namespace {

step_id stage_of(step_id step) { return holds(rule::stage_by_step) ? step : step_id{}; }

}  // namespace

load_actor_state::load_actor_state(load_actor::pointer self_pointer, scheduler_actor scheduler_handle,
                                   stream_lease lease, transfer_memory memory)
    : self(self_pointer), scheduler(std::move(scheduler_handle)),
      queue(lease, std::move(memory), transfer_direction::load,
            [me = load_actor{self_pointer}] { compat::anon_mail(copies_ended{}).send(me); }) {}

load_actor::behavior_type load_actor_state::make_behavior() {
  return {
      [this](const stage_loads& message) { staged[stage_of(message.step)] = message.loads; },
      [this](const unstage_loads& message) { staged.erase(stage_of(message.step)); },
      [this](const current_step_loads& message) -> caf::result<step_load_ids> {
        step_load_ids answer{message.step, {}};
        if (const auto found = staged.find(stage_of(message.step)); found != staged.end())
          for (const auto& load : found->second) answer.ids.push_back(load.id);
        return answer;
      },
      [this](const submit_loads& message) {
        queue.submit(message.loads, message.after_step);
        if (const auto step = staged.extract(stage_of(message.step))) queue.submit(step.mapped(), message.after_step);
      },
      [this](const adopt_transfers& message) { queue.adopt(message.ids, message.highest); },
      [this](const copies_ended&) {
        auto ended = queue.take_ended();
        if (!ended.empty())
          compat::mail(self, transfers_settled{transfer_direction::load, std::move(ended)}).send(scheduler);
      },
  };
}

}  // namespace sluice::inline v0
