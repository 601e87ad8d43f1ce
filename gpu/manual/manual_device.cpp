// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/manual/manual_device.hpp>

#include <cerrno>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include <sluice/gpu/manual/manual_memory.hpp>
#include <sluice/gpu/manual/manual_stream.hpp>
#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::manual {

class manual_device::state : public shared_state {
 public:
  explicit state(options limits) : memory(limits) {}

  manual_stream* find(const std::string& name) const;
  manual_stream* own(stream& on) const;
  template <memory_space Space>
  tl::expected<owned_memory<Space>, error> allocate(std::size_t num_bytes);
  /// Runs everything before the batch `tag`; its stream, with the batch at the front.
  tl::expected<manual_stream*, error> bring_to_front(const std::string& call, std::uint64_t tag,
                                                     std::size_t num_copies);
  /// An outstanding batch touches it.
  bool in_use(memory_view range) const;

  memory_book memory;
};

namespace {

tl::unexpected<error> refused(std::string call, std::string text) {
  return tl::unexpected(usage_error(std::move(call), std::move(text)));
}

tl::unexpected<error> blocked(std::string call, const stream& on, std::uint64_t step) {
  return refused(std::move(call), "stream '" + on.name() + "' waits for step " + std::to_string(step));
}

}  // namespace

manual_stream* manual_device::state::find(const std::string& name) const {
  manual_stream* newest = nullptr;
  for (manual_stream* living : streams) {
    if (living->name() == name) newest = living;
  }
  return newest;
}

manual_stream* manual_device::state::own(stream& on) const {
  auto* manual = dynamic_cast<manual_stream*>(&on);
  return manual != nullptr && manual->belongs_to(*this) ? manual : nullptr;
}

template <memory_space Space>
tl::expected<owned_memory<Space>, error> manual_device::state::allocate(std::size_t num_bytes) {
  const std::scoped_lock lock(mutex);
  return memory.allocate(Space, num_bytes).map([this](memory_view range) {
    return owned_memory<Space>(range, [this](memory_view released) {
      const std::scoped_lock relock(mutex);
      memory.release(released, in_use(released));
    });
  });
}

tl::expected<manual_stream*, error> manual_device::state::bring_to_front(const std::string& call, std::uint64_t tag,
                                                                         std::size_t num_copies) {
  for (manual_stream* living : streams) {
    const auto position = living->find_copies(tag);
    if (!position) continue;
    if (num_copies > living->num_copies(*position)) return refused(call, "the batch has fewer copies");
    if (const auto step = living->blocking_step(*position)) return blocked(call, *living, *step);
    for (std::size_t done = 0; done < *position; ++done) living->run_front();
    return living;
  }
  return refused(call, "no outstanding batch has the tag " + std::to_string(tag));
}

bool manual_device::state::in_use(memory_view range) const {
  std::vector<memory_access> accesses;
  for (const manual_stream* living : streams) {
    living->append_reads(accesses);
    living->append_writes(accesses);
  }
  for (const memory_access& access : accesses) {
    if (access.overlaps(range)) return true;
  }
  return false;
}

bool memory_access::overlaps(memory_view range) const {
  const std::less<const std::byte*> before;
  return before(data, range.data + range.num_bytes) && before(range.data, data + num_bytes);
}

manual_device::manual_device(options limits) : state_(std::make_unique<state>(limits)) {}

manual_device::~manual_device() = default;

device_info manual_device::info() const {
  const std::scoped_lock lock(state_->mutex);
  return {"manual", state_->memory.free_bytes(memory_space::device)};
}

tl::expected<device_memory, error> manual_device::allocate_device(std::size_t num_bytes) {
  return state_->allocate<memory_space::device>(num_bytes);
}

status manual_device::discard(memory_view range) {
  const std::scoped_lock lock(state_->mutex);
  return state_->memory.discard(range, state_->in_use(range));
}

status manual_device::restore(memory_view range) {
  const std::scoped_lock lock(state_->mutex);
  return state_->memory.restore(range, state_->in_use(range));
}

tl::expected<host_memory, error> manual_device::allocate_host(std::size_t num_bytes) {
  return state_->allocate<memory_space::host>(num_bytes);
}

tl::expected<std::unique_ptr<stream>, error> manual_device::make_stream(std::string name) {
  const std::scoped_lock lock(state_->mutex);
  return std::make_unique<manual_stream>(std::move(name), *state_);
}

status manual_device::record_step(stream& on, std::uint64_t step) {
  const std::scoped_lock lock(state_->mutex);
  manual_stream* own = state_->own(on);
  if (own == nullptr) return refused("record_step", "the stream is not this device's");
  return state_->steps.record(on, step).map([&] { own->enqueue_record(step); });
}

status manual_device::wait_step(stream& on, std::uint64_t step) {
  const std::scoped_lock lock(state_->mutex);
  manual_stream* own = state_->own(on);
  if (own == nullptr) return refused("wait_step", "the stream is not this device's");
  if (step == 0) return {};
  return state_->steps.check_wait(step).map([&] { own->enqueue_wait(step); });
}

std::vector<std::string> manual_device::stream_names() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<std::string> names;
  for (const manual_stream* living : state_->streams) names.push_back(living->name());
  return names;
}

std::vector<std::string> manual_device::runnable_streams() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<std::string> names;
  for (const manual_stream* living : state_->streams) {
    if (living->runnable()) names.push_back(living->name());
  }
  return names;
}

std::vector<operation> manual_device::outstanding(const std::string& stream_name) const {
  const std::scoped_lock lock(state_->mutex);
  const manual_stream* found = state_->find(stream_name);
  return found == nullptr ? std::vector<operation>{} : found->outstanding();
}

std::vector<std::uint64_t> manual_device::outstanding_tags() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<std::uint64_t> tags;
  for (const manual_stream* living : state_->streams) {
    for (const operation& queued : living->outstanding()) {
      if (queued.kind == operation_kind::copies) tags.push_back(queued.tag);
    }
  }
  return tags;
}

std::vector<memory_access> manual_device::outstanding_reads() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<memory_access> accesses;
  for (const manual_stream* living : state_->streams) living->append_reads(accesses);
  return accesses;
}

std::vector<memory_access> manual_device::outstanding_writes() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<memory_access> accesses;
  for (const manual_stream* living : state_->streams) living->append_writes(accesses);
  return accesses;
}

bool manual_device::idle() const {
  const std::scoped_lock lock(state_->mutex);
  for (const manual_stream* living : state_->streams) {
    if (!living->empty()) return false;
  }
  return true;
}

std::size_t manual_device::num_premature_releases() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->memory.num_premature_releases();
}

status manual_device::step(const std::string& stream_name) {
  const std::scoped_lock lock(state_->mutex);
  manual_stream* found = state_->find(stream_name);
  if (found == nullptr) return refused("step", "no stream '" + stream_name + "'");
  if (found->empty()) return refused("step", "stream '" + stream_name + "' is empty");
  if (const auto blocking = found->blocking_step(1)) return blocked("step", *found, *blocking);
  found->run_front();
  return {};
}

status manual_device::complete_copies(std::uint64_t tag) {
  const std::scoped_lock lock(state_->mutex);
  return state_->bring_to_front("complete_copies", tag, 0).map([](manual_stream* on) { on->run_front(); });
}

status manual_device::start_copies(std::uint64_t tag, std::size_t num_copies) {
  const std::scoped_lock lock(state_->mutex);
  return state_->bring_to_front("start_copies", tag, num_copies).map([=](manual_stream* on) {
    on->start_front(num_copies);
  });
}

status manual_device::fail_copies(std::uint64_t tag, std::size_t num_good_copies, bad_copy leaves) {
  const std::scoped_lock lock(state_->mutex);
  return state_->bring_to_front("fail_copies", tag, num_good_copies).map([=](manual_stream* on) {
    on->fail_front(num_good_copies, leaves);
  });
}

std::size_t manual_device::run_all(const std::string& stream_name) {
  const std::scoped_lock lock(state_->mutex);
  manual_stream* found = state_->find(stream_name);
  return found == nullptr ? 0 : found->run_ready();
}

std::size_t manual_device::run_everything() {
  const std::scoped_lock lock(state_->mutex);
  std::size_t num_run = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t position = 0; position < state_->streams.size(); ++position) {
      if (!state_->streams[position]->runnable()) continue;
      state_->streams[position]->run_front();
      ++num_run;
      progress = true;
    }
  }
  return num_run;
}

void manual_device::set_inline(const std::string& stream_name) {
  const std::scoped_lock lock(state_->mutex);
  state_->inline_names.insert(stream_name);
  if (manual_stream* found = state_->find(stream_name)) found->set_inline();
}

status manual_device::refuse_next_copies(const std::string& stream_name, error reason) {
  const std::scoped_lock lock(state_->mutex);
  manual_stream* found = state_->find(stream_name);
  if (found == nullptr) return refused("refuse_next_copies", "no stream '" + stream_name + "'");
  found->refuse_next_copies(std::move(reason));
  return {};
}

status manual_device::refuse_next_call(const std::string& stream_name, error reason) {
  const std::scoped_lock lock(state_->mutex);
  manual_stream* found = state_->find(stream_name);
  if (found == nullptr) return refused("refuse_next_call", "no stream '" + stream_name + "'");
  found->refuse_next_call(std::move(reason));
  return {};
}

}  // namespace sluice::inline v0::gpu::manual
