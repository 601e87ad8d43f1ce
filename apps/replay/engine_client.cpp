// SPDX-License-Identifier: Apache-2.0
#include "replay/engine_client.hpp"

#include <functional>
#include <thread>

#include <nlohmann/json.hpp>

#include "replay/errors.hpp"
#include "replay/live_stream.hpp"

namespace sluice::replay {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr auto poll_interval = 2ms;
constexpr auto idle_timeout = 60s;

bool poll_until(std::chrono::milliseconds timeout, const std::function<bool()>& is_reached) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!is_reached()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(poll_interval);
  }
  return true;
}

std::string flag(bool value) { return value ? "true" : "false"; }

double num_transfers(const metrics_page& page) { return page.sum("sluice_transfers_in_flight"); }

void require_ok(const std::string& what, const http_reply& reply) {
  if (reply.status != 200) throw replay_error(what + " got " + std::to_string(reply.status) + ": " + reply.body);
}

}  // namespace

reset_reply parse_reset_reply(std::string_view body) try {
  const json reply = json::parse(body);
  const json& device = reply.at("caches").at("device");
  const json& held_by = device.at("held_by");
  reset_reply result;
  result.success = reply.at("success").get<bool>();
  result.held_by_loads = held_by.at("loads").get<std::vector<std::uint64_t>>();
  result.held_by_running_requests = held_by.at("running_requests").get<std::uint64_t>();
  result.num_stores_in_flight = device.at("stores_in_flight").get<std::uint64_t>();
  return result;
} catch (const json::exception& error) {
  throw replay_error("a malformed reply to a reset (" + std::string(error.what()) + "): " + std::string(body));
}

engine_client::engine_client(const http_client& http) : http_(http) {
  const http_reply reply = http_.get("/v1/models");
  require_ok("GET /v1/models", reply);
  try {
    model_ = json::parse(reply.body).at("data").at(0).at("id").get<std::string>();
  } catch (const json::exception&) {
    throw replay_error("a malformed list of models: " + reply.body);
  }
}

metrics_page engine_client::metrics() const {
  const http_reply reply = http_.get("/metrics");
  require_ok("GET /metrics", reply);
  return metrics_page::parse(reply.body);
}

engine_counters engine_client::counters() const {
  const metrics_page page = metrics();
  return {.loaded_bytes = page.sum("sluice_offload_bytes_total", {{"direction", "load"}, {"tier", "host"}}),
          .stored_bytes = page.sum("sluice_offload_bytes_total", {{"direction", "store"}, {"tier", "host"}}),
          .preemptions = page.sum("sluice_preemptions_total"),
          .reset_preemptions = page.sum("sluice_preemptions_total", {{"cause", "reset"}}),
          .capacity_preemptions = page.sum("sluice_preemptions_total", {{"cause", "capacity"}}),
          .pause_preemptions = page.sum("sluice_preemptions_total", {{"cause", "pause"}}),
          .excluded_loads = page.sum("sluice_boundary_excluded_loads_total"),
          .loads = page.sum("sluice_offload_transfers_total", {{"direction", "load"}}),
          .steps = page.sum("sluice_steps_total"),
          .hit_tokens = page.sum("sluice_prefix_hits_tokens_total"),
          .sampled_tokens = page.sum("sluice_generation_tokens_total"),
          .recomputed_tokens = page.sum("sluice_recomputed_tokens_total")};
}

reset_reply engine_client::reset_device_cache(bool reset_running_requests) const {
  const http_reply reply =
      http_.post("/reset_prefix_cache?reset_external=false&reset_running_requests=" + flag(reset_running_requests), "");
  require_ok("POST /reset_prefix_cache", reply);
  return parse_reset_reply(reply.body);
}

void engine_client::reset_all_caches() const {
  const http_reply reply = http_.post("/reset_prefix_cache?reset_external=true&wait_ms=5000", "");
  require_ok("POST /reset_prefix_cache", reply);
  if (!parse_reset_reply(reply.body).success) throw replay_error("an idle server refuses a reset: " + reply.body);
}

std::string engine_client::command(const std::string& target) const {
  const http_reply reply = http_.post(target, "");
  require_ok("POST " + target, reply);
  try {
    return json::parse(reply.body).at("status").get<std::string>();
  } catch (const json::exception&) {
    throw replay_error("a malformed answer to POST " + target + ": " + reply.body);
  }
}

bool engine_client::ask_state(const std::string& target, const char* name) const {
  const http_reply reply = http_.get(target);
  require_ok("GET " + target, reply);
  try {
    return json::parse(reply.body).at(name).get<bool>();
  } catch (const json::exception&) {
    throw replay_error("a malformed answer to GET " + target + ": " + reply.body);
  }
}

void engine_client::pause(bool clears_device, bool clears_tier) const {
  const std::string status =
      command("/pause?mode=keep&clear_cache=" + flag(clears_device) + "&clear_connector_cache=" + flag(clears_tier));
  if (status != "paused") throw replay_error("the pause ended as " + status);
}

void engine_client::resume() const {
  if (const std::string status = command("/resume"); status != "resumed")
    throw replay_error("the resume ended as " + status);
}

void engine_client::sleep(int level, bool clears_tier) const {
  const std::string status =
      command("/sleep?mode=keep&level=" + std::to_string(level) + "&clear_connector_cache=" + flag(clears_tier));
  if (status != "sleeping") throw replay_error("the sleep ended as " + status);
}

bool engine_client::wake_up(std::string_view tags) const {
  const std::string status = command("/wake_up?tags=" + std::string(tags));
  if (status != "awake" && status != "sleeping") throw replay_error("the wake-up ended as " + status);
  return status == "awake";
}

completion engine_client::complete(const completion_request& request) const {
  const completion result = live_stream(http_, request).finish();
  if (const std::string reason = incompleteness(request, result); !reason.empty()) throw replay_error(reason);
  return result;
}

void engine_client::wait_until_idle() const {
  const auto is_idle = [this] {
    const metrics_page page = metrics();
    return page.sum("sluice_requests") == 0 && num_transfers(page) == 0;
  };
  if (!poll_until(idle_timeout, is_idle))
    throw replay_error("requests or transfers are still there after " + std::to_string(idle_timeout.count()) + " s");
}

bool engine_client::wait_for_load(std::chrono::milliseconds timeout) const {
  return poll_until(timeout, [this] {
    return metrics().sum("sluice_transfers_in_flight", {{"direction", "load"}}) > 0;
  });
}

bool engine_client::wait_for_no_transfer(std::chrono::milliseconds timeout) const {
  return poll_until(timeout, [this] { return num_transfers(metrics()) == 0; });
}

void engine_client::check_health() const {
  require_ok("GET /health", http_.get("/health"));
  complete({.model = model_, .prompt = make_prompt(0, 8), .max_tokens = 4});
}

}  // namespace sluice::replay
