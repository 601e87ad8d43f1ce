// SPDX-License-Identifier: Apache-2.0
//
// The host device, writing down in which order what it gave out is destroyed, and under how many batches of copies
// memory is given back.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sluice/runtime/builtin.hpp>

namespace sluice::testing {

using destruction_log = std::vector<std::string>;

class logging_device final : public gpu::device {
 public:
  explicit logging_device(std::shared_ptr<destruction_log> log, bool refuses_streams = false,
                          const host_device_options& options = {})
      : log_(std::move(log)), refuses_streams_(refuses_streams), host_(make_host_device(options)) {}
  ~logging_device() override { log_->push_back("device"); }

  gpu::device_info info() const override { return host_->info(); }
  tl::expected<gpu::device_memory, gpu::error> allocate_device(std::size_t num_bytes) override {
    return logged(host_->allocate_device(num_bytes), "pool");
  }
  tl::expected<gpu::host_memory, gpu::error> allocate_host(std::size_t num_bytes) override {
    return logged(host_->allocate_host(num_bytes), "tier");
  }
  tl::expected<std::unique_ptr<gpu::stream>, gpu::error> make_stream(std::string name) override {
    if (refuses_streams_) return tl::unexpected(gpu::error{"make_stream", EAGAIN, "no more streams", 0});
    return host_->make_stream(std::move(name)).map([this](std::unique_ptr<gpu::stream> made) {
      return std::unique_ptr<gpu::stream>(std::make_unique<logging_stream>(log_, std::move(made), num_in_flight_));
    });
  }
  gpu::status discard(gpu::memory_view memory) override {
    log_->push_back("discard under " + std::to_string(*num_in_flight_));
    return host_->discard(memory);
  }
  gpu::status restore(gpu::memory_view memory) override { return host_->restore(memory); }
  gpu::status record_step(gpu::stream& on, std::uint64_t step) override {
    return host_->record_step(*static_cast<logging_stream&>(on).host, step);
  }
  gpu::status wait_step(gpu::stream& on, std::uint64_t step) override {
    return host_->wait_step(*static_cast<logging_stream&>(on).host, step);
  }

 private:
  struct logging_stream final : gpu::stream {
    logging_stream(std::shared_ptr<destruction_log> log_to, std::unique_ptr<gpu::stream> made,
                   std::shared_ptr<std::atomic<int>> num_batches)
        : log(std::move(log_to)), host(std::move(made)), num_in_flight(std::move(num_batches)) {}
    ~logging_stream() override { log->push_back(host->name()); }

    const std::string& name() const override { return host->name(); }
    gpu::status enqueue_copies(gpu::copy_batch batch, gpu::copy_callback done) override {
      ++*num_in_flight;
      auto counted = [count = num_in_flight, done = std::move(done)](const gpu::copy_outcome& outcome) {
        --*count;
        done(outcome);
      };
      return host->enqueue_copies(std::move(batch), std::move(counted));
    }
    gpu::status enqueue_function(std::function<void()> function) override {
      return host->enqueue_function(std::move(function));
    }
    gpu::status call_when_reached(gpu::reached_callback callback) override {
      return host->call_when_reached(std::move(callback));
    }

    std::shared_ptr<destruction_log> log;
    std::unique_ptr<gpu::stream> host;
    std::shared_ptr<std::atomic<int>> num_in_flight;
  };

  template <class Memory>
  tl::expected<Memory, gpu::error> logged(tl::expected<Memory, gpu::error> made, std::string what) {
    if (!made) return made;
    const auto kept = std::make_shared<Memory>(std::move(*made));
    return Memory(kept->view(), [kept, what, log = log_](gpu::memory_view) { log->push_back(what); });
  }

  std::shared_ptr<destruction_log> log_;
  bool refuses_streams_;
  std::shared_ptr<std::atomic<int>> num_in_flight_ = std::make_shared<std::atomic<int>>(0);
  std::unique_ptr<gpu::device> host_;
};

/// The tiny model, writing down its end.
class logging_model final : public model_executor {
 public:
  explicit logging_model(std::shared_ptr<destruction_log> log) : log_(std::move(log)) {}
  ~logging_model() override { log_->push_back("model"); }

  model_info info() const override { return tiny_->info(); }
  kv_spec kv(std::uint32_t block_size) const override { return tiny_->kv(block_size); }
  void bind(const kv_memory& memory) override { tiny_->bind(memory); }
  gpu::status enqueue(const step_batch& batch, const std::vector<sampled_token>& previous, gpu::stream& compute,
                      std::vector<sampled_token>& sampled) override {
    return tiny_->enqueue(batch, previous, compute, sampled);
  }

 private:
  std::shared_ptr<destruction_log> log_;
  std::unique_ptr<model_executor> tiny_ = make_tiny_model();
};

}  // namespace sluice::testing
