// SPDX-License-Identifier: Apache-2.0
//
// The command line of sluice-serve.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include <sluice/runtime/options.hpp>

namespace sluice::serve {

/// Limits of the host device's copies, to make transfers visible.
struct host_copy_limits {
  double load_gib_per_s = 0;   ///< 0: unlimited
  double store_gib_per_s = 0;  ///< 0: unlimited
  std::chrono::milliseconds latency{0};
};

struct server_options {
  std::string model = "tiny";
  std::string served_model_name;  ///< empty: `model`
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  ///< 0: any free one
  std::string device = "auto";
  runtime_options engine;
  std::uint64_t seed = 0;
  host_copy_limits host_copy;
  std::chrono::milliseconds tiny_step{0};
  std::uint32_t tiny_window = 0;  ///< tokens; 0: no window layers
  std::string log_level = "info";
  std::chrono::milliseconds shutdown_timeout{30'000};
};

/// The process should end with `exit_code` after printing `text`: to stdout when it is 0 (help, version), else
/// one line to stderr.
struct early_exit {
  int exit_code = 0;
  std::string text;
};

/// Errors (exit code 2): an unknown option, a missing or repeated value, a value that is not allowed; the line
/// says which option, what it got and what is allowed.
std::variant<server_options, early_exit> parse_options(int argc, const char* const* argv);

/// One line per option, as resolved.
std::string describe(const server_options& options);

/// The complaint of runtime::start about a field of its options, in the words of the command line.
std::string in_option_names(std::string complaint);

}  // namespace sluice::serve
