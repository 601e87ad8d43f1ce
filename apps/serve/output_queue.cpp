// SPDX-License-Identifier: Apache-2.0
#include "serve/output_queue.hpp"

#include <unordered_set>

namespace sluice::serve {

void output_queue::push(std::shared_ptr<output_target> target, output_event event) {
  {
    const std::lock_guard lock{mutex_};
    pending_.emplace_back(std::move(target), std::move(event));
    if (pending_.size() > 1) return;
  }
  loop_.post([self = shared_from_this()] { self->drain(); });
}

void output_queue::drain() {
  std::vector<entry> batch;
  {
    const std::lock_guard lock{mutex_};
    batch.swap(pending_);
  }
  std::unordered_set<std::shared_ptr<output_target>> touched;
  for (auto& [target, event] : batch) {
    target->apply(std::move(event));
    touched.insert(target);
  }
  for (const auto& target : touched) target->flush();
}

}  // namespace sluice::serve
