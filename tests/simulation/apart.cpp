// SPDX-License-Identifier: Apache-2.0
#include "apart.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::simulation {

namespace {

using clock = std::chrono::steady_clock;

// -- an outcome as text: a word and numbers per line; of texts the length, and then the text --------------------------

std::string pack(const outcome& outcome) {
  std::ostringstream out;
  out << "ran " << outcome.num_events << ' ' << outcome.num_steps << '\n';
  for (const auto& [name, count] : outcome.seen) out << "seen " << count << ' ' << name.size() << ' ' << name << '\n';
  for (const auto& what : outcome.violations) out << "violation " << what.size() << ' ' << what << '\n';
  out << "end\n";
  return out.str();
}

std::string read_text(std::istringstream& in) {
  std::size_t size = 0;
  in >> size;
  in.get();
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  return text;
}

/// Nothing if the text is cut off.
std::optional<outcome> unpack(const std::string& text) {
  outcome outcome;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (word == "end") return outcome;
    if (word == "ran") in >> outcome.num_events >> outcome.num_steps;
    if (word == "violation") outcome.violations.push_back(read_text(in));
    if (word == "seen") {
      std::uint64_t count = 0;
      in >> count;
      outcome.seen[read_text(in)] = count;
    }
  }
  return std::nullopt;
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void write_all(int to, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto count = write(to, text.data() + at, text.size() - at);
    if (count < 0) std::_Exit(3);
    at += static_cast<std::size_t>(count);
  }
}

class child {
 public:
  child(numbered_trace trace, std::chrono::seconds limit) : trace_(std::move(trace)), limit_(limit) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) fail("pipe");
    last_words_.reset(std::tmpfile());
    if (!last_words_) fail("tmpfile");
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      close(ends[0]);
      dup2(fileno(last_words_.get()), STDERR_FILENO);
      write_all(ends[1], pack(run(trace_.what)));
      std::_Exit(0);
    }
    close(ends[1]);
    from_ = ends[0];
  }

  int from() const { return from_; }
  const numbered_trace& trace() const { return trace_; }
  bool is_overdue() const { return clock::now() - start_ > limit_; }

  /// True once there is nothing left to read.
  bool read_more() {
    std::array<char, 4096> buffer{};
    const auto count = ::read(from_, buffer.data(), buffer.size());
    if (count > 0) text_.append(buffer.data(), static_cast<std::size_t>(count));
    return count <= 0;
  }

  outcome end() {
    const bool was_overdue = is_overdue();
    if (was_overdue) kill(pid_, SIGKILL);
    close(from_);
    int status = 0;
    waitpid(pid_, &status, 0);
    if (auto outcome = unpack(text_)) return *outcome;
    outcome bad;
    if (was_overdue)
      bad.violations.push_back("the run did not end within " + std::to_string(limit_.count()) + " s");
    else if (WIFSIGNALED(status))
      bad.violations.push_back("the process was ended by signal " + std::to_string(WTERMSIG(status)) + last_words());
    else
      bad.violations.push_back("the process ended with code " + std::to_string(WEXITSTATUS(status)) + last_words());
    return bad;
  }

 private:
  struct close_file {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  /// What it wrote to stderr: of an assertion, what was not so.
  std::string last_words() const {
    std::rewind(last_words_.get());
    std::string text;
    std::array<char, 4096> buffer{};
    while (const auto count = std::fread(buffer.data(), 1, buffer.size(), last_words_.get()))
      text.append(buffer.data(), count);
    return text.empty() ? text : ": " + text;
  }

  numbered_trace trace_;
  std::chrono::seconds limit_;
  clock::time_point start_ = clock::now();
  pid_t pid_ = 0;
  int from_ = -1;
  std::unique_ptr<std::FILE, close_file> last_words_;
  std::string text_;
};

}  // namespace

void run_apart(const std::function<std::optional<numbered_trace>()>& next,
               const std::function<bool(const numbered_trace&, const outcome&)>& done, apart_options options) {
  std::vector<child> children;
  bool goes_on = true;
  while (true) {
    while (goes_on && children.size() < options.num_jobs) {
      auto trace = next();
      if (!trace) break;
      children.emplace_back(std::move(*trace), options.limit);
    }
    if (children.empty()) return;
    std::vector<pollfd> waits;
    for (const auto& child : children) waits.push_back({child.from(), POLLIN, 0});
    poll(waits.data(), waits.size(), 200);
    for (auto i = children.size(); i-- > 0;) {
      const bool has_ended = waits[i].revents != 0 && children[i].read_more();
      if (!has_ended && !children[i].is_overdue()) continue;
      const auto outcome = children[i].end();
      goes_on = done(children[i].trace(), outcome) && goes_on;
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

outcome run_apart(const trace& trace, std::chrono::seconds limit) {
  outcome result;
  bool is_given = false;
  run_apart(
      [&]() -> std::optional<numbered_trace> {
        if (std::exchange(is_given, true)) return std::nullopt;
        return numbered_trace{0, trace};
      },
      [&](const numbered_trace&, const outcome& outcome) {
        result = outcome;
        return true;
      },
      {1, limit});
  return result;
}

}  // namespace sluice::simulation
