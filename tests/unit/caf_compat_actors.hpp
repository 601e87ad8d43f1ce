// SPDX-License-Identifier: Apache-2.0
//
// Messages and actors that use every feature of messages/caf_compat.hpp, for its test and for the fixture's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sluice/messages/caf_compat.hpp>

namespace sluice::inline v0 {
namespace compat_test {

enum class color : std::uint8_t { red, green };

enum class fault : std::uint8_t { none = 0, stuck, lost };

inline std::string_view to_string(fault x) { return x == fault::stuck ? "stuck" : x == fault::lost ? "lost" : "none"; }

SLUICE_INSPECT_ENUM(color);
SLUICE_INSPECT_ENUM(fault);

}  // namespace compat_test

// A look-alike of the project's strong_id, in the namespace where the project's own stands.
template <class Tag, class Rep>
struct look_alike_id {
  Rep value{};
  friend bool operator==(look_alike_id, look_alike_id) = default;
};

namespace compat_test {

using job_id = look_alike_id<struct job_tag, std::uint64_t>;

struct part {
  job_id id;
  std::vector<std::uint32_t> blocks;
  friend bool operator==(const part&, const part&) = default;
};
SLUICE_INSPECT(part, id, blocks);

struct wide {
  bool flag = false;
  double ratio = 0;
  std::string text;
  color tint = color::red;
  job_id id;
  std::vector<job_id> ids;
  std::vector<part> parts;
  std::optional<std::uint32_t> slot;
  std::optional<part> maybe_part;
  std::array<std::uint8_t, 32> key{};
  std::chrono::nanoseconds deadline{};
  std::chrono::milliseconds period{};
  std::int32_t number = 0;
  friend bool operator==(const wide&, const wide&) = default;
};
SLUICE_INSPECT(wide, flag, ratio, text, tint, id, ids, parts, slot, maybe_part, key, deadline, period, number);

struct tick {
  friend bool operator==(const tick&, const tick&) = default;
};
SLUICE_INSPECT(tick);

struct start {
  job_id id;
};
SLUICE_INSPECT(start, id);

struct started {
  job_id id;
};
SLUICE_INSPECT(started, id);

struct flush {
  std::vector<job_id> ids;
};
SLUICE_INSPECT(flush, ids);

struct crash {};
SLUICE_INSPECT(crash);

struct release {};
SLUICE_INSPECT(release);

// More fields than any message has, against the limit of the field list.
struct many {
  int a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, y, z, a1, b1, c1, d1, e1, g1, h1, i1, j1, k1,
      l1, m1, n1, o1, p1, q1;
};
SLUICE_INSPECT(many, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, y, z, a1, b1, c1, d1, e1, g1, h1,
               i1, j1, k1, l1, m1, n1, o1, p1, q1);

using worker_actor = compat::typed_actor<caf::result<started>(start), caf::result<void>(flush),
                                         caf::result<void>(crash), caf::result<void>(release), caf::result<void>(tick)>;

// Its handle travels, so it has a type id, too.
struct greeting {
  worker_actor from;
};
SLUICE_INSPECT(greeting, from);

using driver_actor = compat::typed_actor<caf::result<void>(tick), caf::result<void>(wide), caf::result<void>(start),
                                         caf::result<void>(flush), caf::result<void>(greeting)>;

}  // namespace compat_test
}  // namespace sluice::inline v0

SLUICE_BEGIN_TYPE_IDS(sluice_compat_test, SLUICE_FIRST_TYPE_ID + 9000)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::color)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::fault)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::wide)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::many)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::tick)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::start)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::started)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::flush)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::crash)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::release)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::greeting)
SLUICE_TYPE_ID(sluice_compat_test, sluice::compat_test::worker_actor)
SLUICE_TYPE_ID(sluice_compat_test, std::vector<sluice::compat_test::job_id>)
SLUICE_END_TYPE_IDS(sluice_compat_test)

SLUICE_ERROR_CODE_ENUM(sluice::compat_test::fault, "compattest")

namespace sluice::inline v0 {
namespace compat_test {
using namespace std::chrono_literals;
using ids = std::vector<job_id>;

// What a driver saw; shared with the test.
struct driver_log {
  std::vector<job_id> started;
  std::vector<caf::error> errors;
  std::vector<caf::error> downs;
  std::vector<caf::error> more_downs;
  int num_ticks = 0;
  int num_flushed = 0;
  std::vector<wide> wides;
};

struct worker_state {
  static constexpr const char* name = "worker";

  worker_state(worker_actor::pointer self, std::unique_ptr<int> token) : self_(self), token_(std::move(token)) {}

  worker_actor::behavior_type make_behavior() {
    return {
        [this](const start& msg) -> caf::result<started> {
          if (msg.id.value == 0) return compat::make_error(fault::lost, ids{{7}, {8}});
          return started{{msg.id.value + static_cast<std::uint64_t>(*token_)}};
        },
        [this](const flush& msg) -> caf::result<void> {
          if (msg.ids == ids{{99}}) throw std::runtime_error{"flushed badly"};
          pending_.push_back(compat::make_response_promise<void>(self_));
          asked_ = msg.ids;
          return pending_.back();
        },
        [](const crash&) { throw std::runtime_error{"crashed on purpose"}; },
        [this](const release&) {
          for (auto& promise : pending_)
            if (asked_.empty())
              compat::deliver_error(promise, compat::make_error(fault::stuck));
            else
              compat::deliver(promise);
          pending_.clear();
        },
        [this](const tick&) { self_->quit(); },
    };
  }

  worker_actor::pointer self_;
  std::unique_ptr<int> token_;  // move-only on purpose
  std::vector<compat::response_promise<void>> pending_;
  ids asked_;
};

struct driver_state {
  static constexpr const char* name = "driver";

  driver_state(driver_actor::pointer self, worker_actor worker, worker_actor other, std::shared_ptr<driver_log> log)
      : self_(self), worker_(std::move(worker)), other_(std::move(other)), log_(std::move(log)), monitors_(self) {}

  driver_actor::behavior_type make_behavior() {
    monitors_.add(worker_, [this](const caf::error& reason) { log_->downs.push_back(reason); });
    monitors_.add(other_, [this](const caf::error& reason) { log_->more_downs.push_back(reason); });
    return {
        [this](const tick&) {
          if (++log_->num_ticks == 1) compat::mail(self_, tick{}).delay(10ms).send(driver_actor{self_});
        },
        [this](const wide& msg) {
          log_->wides.push_back(msg);
          monitors_.remove(other_);
        },
        [this](const start& msg) {
          compat::mail(self_, msg)
              .request(worker_, 100ms)
              .then([this](const started& answer) { log_->started.push_back(answer.id); },
                    [this](const caf::error& err) { log_->errors.push_back(err); });
        },
        [this](const flush& msg) {
          compat::mail(self_, msg)
              .request(worker_, 100ms)
              .then([this] { ++log_->num_flushed; }, [this](const caf::error& err) { log_->errors.push_back(err); });
        },
        [this](const greeting& msg) {
          sender_ = compat::sender_as<worker_actor>(self_);
          if (sender_) compat::mail(self_, tick{}).send(sender_);
          compat::mail(self_, tick{}).send(msg.from);
        },
    };
  }

  driver_actor::pointer self_;
  worker_actor worker_;
  worker_actor other_;
  worker_actor sender_;
  std::shared_ptr<driver_log> log_;
  compat::monitors monitors_;
};

inline wide make_wide() {
  wide x;
  x.flag = true;
  x.ratio = 0.5;
  x.text = "text";
  x.tint = color::green;
  x.id = {3};
  x.ids = {{1}, {2}};
  x.parts = {part{{4}, {5, 6}}};
  x.slot = 9;
  x.key[31] = 255;
  x.deadline = 7ns;
  x.period = 8ms;
  x.number = -1;
  return x;
}

}  // namespace compat_test
}  // namespace sluice::inline v0
