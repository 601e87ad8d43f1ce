// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace sluice::replay {

/// A `sluice-serve` that runs as a child with a free port. Its last lines of output are kept for error messages.
/// Owned and called by one thread; the destructor kills a server that was not stopped.
class server_process {
 public:
  /// Starts `binary` with `options` and `--port 0`. Throws replay_error when that is not possible.
  server_process(const std::string& binary, const std::vector<std::string>& options, bool echoes_output);
  ~server_process();
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;

  /// The URL that the server prints once it listens. Throws replay_error, with the server's last line, when it ends
  /// or says nothing before `timeout`.
  std::string wait_for_url(std::chrono::milliseconds timeout);

  /// Asks the server to end and waits. Throws replay_error when it does not within `timeout`, or with another exit
  /// code than 0.
  void stop(std::chrono::milliseconds timeout);

  /// The last lines it printed.
  std::string last_output() const;

 private:
  void read_output(int descriptor);
  void take_line(std::string line);
  bool has_ended();
  void kill_and_reap();

  const bool echoes_output_;
  pid_t pid_ = -1;  ///< -1 once reaped
  int exit_status_ = 0;
  mutable std::mutex mutex_;  ///< guards everything between here and the thread
  std::condition_variable changed_;
  std::deque<std::string> last_lines_;
  std::string url_;
  bool is_output_closed_ = false;
  std::thread reader_;
};

}  // namespace sluice::replay
