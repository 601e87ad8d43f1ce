// SPDX-License-Identifier: Apache-2.0
#include "replay/server_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replay/errors.hpp"

namespace sluice::replay {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t max_kept_lines = 20;
constexpr std::string_view url_mark = "listening on ";

/// Starts a child whose standard output and error go to `output`, and that dies with this process. Returns its id;
/// throws replay_error. A child that cannot run `binary` says so in its output and ends.
pid_t spawn(const std::string& binary, std::vector<std::string> words, int output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string complaint = "cannot run " + binary + "\n";
  const pid_t pid = fork();
  if (pid < 0) throw replay_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid > 0) return pid;
  // Only calls that are safe between fork and exec.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(binary.c_str(), arguments.data());
  [[maybe_unused]] const ssize_t num_written = write(STDERR_FILENO, complaint.data(), complaint.size());
  _exit(127);
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

server_process::server_process(const std::string& binary, const std::vector<std::string>& options, bool echoes_output)
    : echoes_output_(echoes_output) {
  std::vector<std::string> words{binary, "--port", "0"};
  words.insert(words.end(), options.begin(), options.end());
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw replay_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  try {
    pid_ = spawn(binary, std::move(words), ends[1]);
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  close(ends[1]);
  reader_ = std::thread([this, descriptor = ends[0]] { read_output(descriptor); });
}

server_process::~server_process() {
  kill_and_reap();
  reader_.join();
}

void server_process::read_output(int descriptor) {
  std::string partial;
  std::array<char, 4096> data;
  while (true) {
    const ssize_t num_read = read(descriptor, data.data(), data.size());
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read <= 0) break;
    partial.append(data.data(), static_cast<std::size_t>(num_read));
    for (std::size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
      take_line(partial.substr(0, end));
      partial.erase(0, end + 1);
    }
  }
  close(descriptor);
  if (!partial.empty()) take_line(partial);
  const std::lock_guard lock(mutex_);
  is_output_closed_ = true;
  changed_.notify_all();
}

void server_process::take_line(std::string line) {
  const std::lock_guard lock(mutex_);
  if (echoes_output_) std::cerr << "  server: " << line << std::endl;
  if (const std::size_t mark = line.find(url_mark); url_.empty() && mark != std::string::npos) {
    url_ = line.substr(mark + url_mark.size());
    url_.resize(std::min(url_.find_first_of(" \t\r,"), url_.size()));
  }
  last_lines_.push_back(std::move(line));
  if (last_lines_.size() > max_kept_lines) last_lines_.pop_front();
  changed_.notify_all();
}

std::string server_process::wait_for_url(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return !url_.empty() || is_output_closed_; });
  if (!url_.empty()) return url_;
  const std::string last_line = last_lines_.empty() ? "(it printed nothing)" : last_lines_.back();
  throw replay_error("the server does not say where it listens: " + last_line);
}

void server_process::stop(std::chrono::milliseconds timeout) {
  if (pid_ < 0) return;
  if (has_ended()) throw replay_error("the server " + describe_end(exit_status_) + " before it was asked to");
  kill(pid_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      kill_and_reap();
      throw replay_error("the server did not end within " + std::to_string(timeout.count()) + " ms of SIGTERM");
    }
    std::this_thread::sleep_for(10ms);
  }
  if (exit_status_ != 0) throw replay_error("after SIGTERM the server " + describe_end(exit_status_));
}

std::string server_process::last_output() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& line : last_lines_) text += line + '\n';
  return text;
}

bool server_process::has_ended() {
  if (pid_ >= 0 && waitpid(pid_, &exit_status_, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

void server_process::kill_and_reap() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &exit_status_, 0);
  pid_ = -1;
}

}  // namespace sluice::replay
