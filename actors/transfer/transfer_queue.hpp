// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include <sluice/actors/transfer/transfer_memory.hpp>
#include <sluice/gpu/device.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// A stream that somebody else owns, lent to one actor, with its device.
struct stream_lease {
  gpu::device* device = nullptr;
  gpu::stream* stream = nullptr;
};

/// The physical state of one direction's transfers: which are on the stream, and which have ended. Used by one load
/// or store actor; only the list of ended transfers is also written by the stream's thread.
class transfer_queue {
 public:
  /// `wake` is called on the stream's thread, at most once until `take_ended` is called; it may only post a message.
  transfer_queue(stream_lease lease, transfer_memory memory, transfer_direction direction,
                 std::function<void()> wake);

  /// Enqueues the jobs behind the event of `after_step` (0: nothing to wait for). A job that the device refuses ends
  /// as failed, with no good copy.
  void submit(const std::vector<transfer_job>& jobs, step_id after_step);

  /// Takes over transfers that a predecessor on the same stream may have submitted. They end, as refused, when
  /// everything on the stream has; while the device cannot say when that is, they do not.
  void adopt(const std::vector<transfer_id>& ids, transfer_id highest);

  /// On the stream: submitted and not yet taken as ended.
  bool holds(transfer_id id) const { return submitted_.contains(id); }
  transfer_id highest_submitted() const { return highest_; }

  /// The transfers that have ended since the last call, in the order of their ends.
  std::vector<transfer_outcome> take_ended();

 private:
  struct ended_list;

  void enqueue(const transfer_job& job, const gpu::status& waits);

  stream_lease lease_;
  transfer_memory memory_;
  transfer_direction direction_;
  std::shared_ptr<ended_list> ended_;
  std::set<transfer_id> submitted_;
  transfer_id highest_;
};

}  // namespace sluice::inline v0
