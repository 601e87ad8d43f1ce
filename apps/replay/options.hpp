// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "replay/http_client.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

/// How a started server schedules.
enum class scheduling { sync, async };

struct options {
  std::vector<scenario> scenarios;  ///< never empty
  std::optional<endpoint> url;      ///< of a server that runs already
  std::string server_binary;        ///< otherwise started, one for each scenario and scheduling
  std::vector<scheduling> schedulings{scheduling::sync, scheduling::async};  ///< of started servers; never empty
  std::chrono::seconds request_timeout{60};
  std::uint64_t seed = 1;
  bool echoes_server_output = false;
};

/// Instead of options: the process is to end with this code and has said what it had to.
struct exit_now {
  int code = 0;
};

/// Reads the command line and the file that `--config` names. `--help` and `--version` print to standard output and
/// exit with 0; a bad option prints one line to standard error and exits with 2.
std::variant<options, exit_now> parse_options(int argc, const char* const* argv);

std::string_view name(scheduling how);

/// The server's option.
std::string_view server_option(scheduling how);

/// What was resolved, in one line.
std::string describe(const options& resolved);

}  // namespace sluice::replay
