// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <iostream>

#include <sys/resource.h>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <sluice/runtime/builtin.hpp>
#include <sluice/runtime/runtime.hpp>
#include <sluice/version.hpp>

#include "http/limits.hpp"
#include "serve/options.hpp"
#include "serve/process.hpp"

namespace {

using namespace sluice;

constexpr int exit_failed = 1;
constexpr int exit_bad_option = 2;

int complain(int exit_code, const std::string& message) {
  std::cerr << "sluice-serve: " << message << std::endl;
  return exit_code;
}

// Every open stream is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

tl::expected<std::unique_ptr<runtime>, error> start_runtime(const serve::server_options& options,
                                                            const std::shared_ptr<const tokenizer>& tokens) {
  host_device_options device;
  device.load_gib_per_s = options.host_copy.load_gib_per_s;
  device.store_gib_per_s = options.host_copy.store_gib_per_s;
  device.copy_latency = options.host_copy.latency;
  tiny_options model;
  model.seed = options.seed;
  model.min_step = options.tiny_step;
  model.window_tokens = options.tiny_window;
  return runtime::start(options.engine, make_host_device(device), make_tiny_model(model), tokens);
}

void announce(const serve::server_options& options, const serve::service& api, std::uint16_t port) {
  const auto& info = api.engine.info();
  const bool is_v6 = options.host.find(':') != std::string::npos;
  const auto host = is_v6 ? "[" + options.host + "]" : options.host;
  std::cout << "sluice-serve " SLUICE_VERSION "\n"
            << serve::describe(options) << "resolved: model " << info.model.name << " served as " << api.model_name
            << ", device " << info.device_name << ", " << info.num_device_blocks << " device blocks and "
            << info.num_host_slots << " host slots of " << info.bytes_per_block << " bytes per block, max model length "
            << info.max_model_len << " tokens\n"
            << "listening on http://" << host << ":" << port << std::endl;
}

int serve_model(const serve::server_options& options) {
  http::loop loop;
  http::router routes;
  http::server server{loop, routes, http::limits{}};
  server.open(options.host, options.port);
  const auto tokens = make_byte_tokenizer();
  auto engine = start_runtime(options, tokens);
  if (!engine) {
    const auto& failure = engine.error();
    if (failure.code == errc::invalid_argument) return complain(exit_bad_option, serve::in_option_names(failure.message));
    return complain(exit_failed, failure.message);
  }
  const auto served_name = options.served_model_name.empty() ? options.model : options.served_model_name;
  serve::service api{loop, **engine, tokens, {served_name, options.seed}};
  serve::add_endpoints(routes, api);
  const auto result = serve::serve_until_signalled(loop, server, api, options.shutdown_timeout,
                                                   [&] { announce(options, api, server.port()); });
  if (result == serve::serve_result::clean) return EXIT_SUCCESS;
  complain(exit_failed, "the engine did not stop cleanly; see the log");
  spdlog::shutdown();
  std::_Exit(exit_failed);  // its threads cannot be joined
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = serve::parse_options(argc, argv);
  if (const auto* early = std::get_if<serve::early_exit>(&parsed)) {
    (early->exit_code == 0 ? std::cout : std::cerr) << early->text << std::flush;
    return early->exit_code;
  }
  const auto& options = std::get<serve::server_options>(parsed);
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  spdlog::set_default_logger(spdlog::stderr_color_mt("serve"));
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  try {
    return serve_model(options);
  } catch (const std::exception& failure) {
    return complain(exit_failed, failure.what());
  }
}
