// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/host_device.hpp>

#include <system_error>
#include <utility>

#include <sluice/gpu/host/available_memory.hpp>
#include <sluice/gpu/host/device_book.hpp>
#include <sluice/gpu/host/host_stream.hpp>
#include <sluice/gpu/host/pages.hpp>
#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::host {

namespace {

tl::unexpected<error> foreign_stream(std::string call) {
  return tl::unexpected(usage_error(std::move(call), "the stream is not this device's"));
}

class host_device final : public device {
 public:
  explicit host_device(const options& chosen)
      : book_(chosen.device_bytes != 0 ? chosen.device_bytes : available_memory_bytes()),
        shared_{link(chosen.load_gib_per_s, chosen.latency), link(chosen.store_gib_per_s, chosen.latency), {}} {}

  device_info info() const override { return {"host", book_.free_bytes()}; }

  tl::expected<device_memory, error> allocate_device(std::size_t num_bytes) override {
    return book_.allocate(num_bytes).map([this](memory_view range) {
      return device_memory(range, [this](memory_view released) { book_.release(released); });
    });
  }

  status discard(memory_view range) override { return book_.discard(range); }
  status restore(memory_view range) override { return book_.restore(range); }

  tl::expected<host_memory, error> allocate_host(std::size_t num_bytes) override {
    return map_pages(num_bytes).map([](memory_view range) { return host_memory(range, unmap_pages); });
  }

  tl::expected<std::unique_ptr<stream>, error> make_stream(std::string name) override {
    try {
      return std::make_unique<host_stream>(std::move(name), shared_);
    } catch (const std::system_error& thrown) {
      return tl::unexpected(errno_error("make_stream", thrown.code().value()));
    }
  }

  status record_step(stream& on, std::uint64_t step) override {
    host_stream* own = owned(on);
    if (own == nullptr) return foreign_stream("record_step");
    return shared_.steps.record(on, step).map([&] { own->enqueue_record(step); });
  }

  status wait_step(stream& on, std::uint64_t step) override {
    host_stream* own = owned(on);
    if (own == nullptr) return foreign_stream("wait_step");
    if (step == 0) return {};
    return shared_.steps.check_wait(step).map([&] { own->enqueue_wait(step); });
  }

 private:
  host_stream* owned(stream& on) const {
    auto* own = dynamic_cast<host_stream*>(&on);
    return own != nullptr && own->belongs_to(shared_) ? own : nullptr;
  }

  device_book book_;
  shared_state shared_;
};

}  // namespace

std::unique_ptr<device> make_device(options chosen) { return std::make_unique<host_device>(chosen); }

}  // namespace sluice::inline v0::gpu::host
