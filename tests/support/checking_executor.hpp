// SPDX-License-Identifier: Apache-2.0
//
// A model for tests whose KV content proves where it came from: any stale, mixed, torn or foreign block is named.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>

#include "checking_memory.hpp"

namespace sluice::inline v0 {

struct checking_executor_options {
  std::uint32_t vocab_size = 257;
  token_id end_token = 256;
  std::uint32_t end_one_in = 0;      ///< one token in this many is the end token; 0: only scripts produce it
  std::size_t bytes_per_token = 64;  ///< a multiple of 8, at least 8
  std::uint32_t max_model_len = 8192;
  /// Of one group kv() sets the block size; several have their own.
  std::vector<kv_group_spec> groups = {kv_group_spec{}};
  std::chrono::milliseconds min_step{0};                  ///< least duration of a step
  std::size_t max_violations = 100;                       ///< later ones are counted only
};

/// Forced output tokens by output position.
using forced_tokens = std::map<std::uint32_t, token_id>;

/// Content: chain(p) = next_chain(chain(p - 1), token at p, p) covers the whole prefix. Position p of a block holds the
/// words chain(p) + i * step, i = 0, 1, ..., over all its bytes, masked with the epoch. Word 0 alone gives chain(p)
/// back, so a lone torn word shows even where the tokens are unknown.
///
/// Before a step computes anything, every position before first_position that the entry's first token reads is read,
/// in every group, and compared with the request's history: all of them in a full-attention group, those of the window
/// in a sliding one. What is computed is written in every group. A history is the registered prompt, or else is learned: from entries, and for positions
/// that came from a cache by finding the token that continues the chain. It outlives preemption, so a resumed
/// request must replay the same tokens. What is written continues what was *read*, and the next token is a function
/// of every word read, so wrong content also shows as wrong output against `reference`, which does not depend on the
/// groups.
///
/// Also reported: table too short, null or unknown block, a token other than in the history, another sampled token
/// than before at the same position, a pending token that the step before did not sample for this request and attempt,
/// a block that one request writes while another reads or writes it.
///
/// `batch` is read when the step runs, not at enqueue. The memory must be host memory. All functions but bind and
/// enqueue may be called from any thread; every call waits for a computation that is running.
class checking_executor : public model_executor {
 public:
  explicit checking_executor(checking_executor_options options = {});

  model_info info() const override;
  kv_spec kv(std::uint32_t block_size) const override;
  void bind(const kv_memory& memory) override;
  gpu::status enqueue(const step_batch& batch, const std::vector<sampled_token>& previous, gpu::stream& compute,
                      std::vector<sampled_token>& sampled) override;

  /// Registers the tokens that `request` must consist of. Optional; at best before its first step.
  void expect(request_id request, const std::vector<token_id>& prompt);

  /// Drops what is known of an ended request.
  void forget(request_id request);

  /// Forces output tokens of every request with exactly this prompt, in `reference` too.
  void script(std::vector<token_id> prompt, forced_tokens forced);

  /// From the next step on older content is a violation; outputs stay the same. For a device that is idle or was
  /// just reset: whatever is read later must have been written later.
  void begin_epoch();
  /// The same, from the first step after `last` on: steps in flight may still read what is older.
  void begin_epoch_after(step_id last);
  /// From the first step after `last` on, content is of a new epoch, but what is older stays good. Returns the epoch.
  std::uint64_t mark_epoch_after(step_id last);
  /// The oldest epoch of what stands in a block of `group`, all of which must have been computed; none if it is torn.
  std::optional<std::uint64_t> oldest_epoch(std::size_t group, std::span<const std::byte> block) const;

  /// The right output of a request: `params.max_tokens` tokens, fewer when an end token comes first and is not
  /// ignored. Touches no memory.
  std::vector<token_id> reference(const request_params& params) const;

  /// The same, greedy, not ignoring end tokens.
  std::vector<token_id> reference(const std::vector<token_id>& prompt, std::uint32_t num_tokens) const;

  /// Each names request, position, block, and what was expected and found. Empty when all is well.
  std::vector<std::string> violations() const;
  std::size_t num_violations() const;

  /// Positions read and compared so far: a test that asserts no violations should assert that this is not 0.
  std::uint64_t num_verified_positions() const;

 private:
  struct sequence {
    std::vector<token_id> tokens;
    std::vector<std::uint64_t> chain;  // of the same positions
    std::vector<std::uint64_t> fold;   // over the prefix up to and including the position
  };

  struct block_use {
    std::uint64_t step = 0;  // of the other members
    request_id reader, writer;
    bool has_many_readers = false;
  };

  /// What reading a request's prefix gives.
  struct reading {
    std::uint64_t last_chain;
    std::uint64_t fold;
    std::uint64_t fault = 0;  // over every wrong word
  };

  void run(const step_batch& batch, const std::vector<sampled_token>& previous, std::vector<sampled_token>& sampled);
  void resolve(batch_entry& entry, const std::vector<sampled_token>& previous);
  reading read_prefix(const batch_entry& entry);
  void compute(const batch_entry& entry, reading state, std::vector<sampled_token>& sampled);
  void sample(const batch_entry& entry, std::uint64_t fold, std::vector<sampled_token>& sampled);

  /// A block of one group while positions go by: looked up once, reported once.
  struct block_cursor {
    std::optional<block_id> block;
    bool is_reported = false;
  };
  void read_position(const batch_entry& entry, std::size_t group, std::uint32_t position, block_cursor& cursor,
                     reading& state);
  void learn(const batch_entry& entry, std::uint32_t position);

  std::optional<block_id> find_block(const batch_entry& entry, std::size_t group, std::uint32_t position,
                                     bool reports = true);
  void mark_read(block_id block, request_id request);
  void mark_written(block_id block, request_id request);

  void write_position(std::size_t group, block_id block, std::uint32_t position, std::uint64_t chain);

  void append(sequence& known, token_id token, std::optional<std::uint64_t> chain = std::nullopt) const;
  token_id next_token(std::uint64_t fold, const sampling_params& sampling, std::uint32_t output_position,
                      const std::vector<token_id>& tokens, std::size_t num_prompt_tokens) const;

  std::uint64_t end_epoch_after(step_id last, bool is_good_later);
  /// The word without the mask of the newest good epoch in which it is `expected`; of the current one if there is none.
  std::uint64_t unmask(std::uint64_t raw, std::uint64_t expected) const;
  std::string describe_content(std::uint64_t raw, std::size_t word) const;
  void report(request_id request, const std::string& what);

  const checking_executor_options options_;
  const std::size_t num_words_;  // per position, for outputs

  mutable std::mutex mutex_;  // guards all below
  checking_memory memory_;
  std::uint64_t epoch_ = 0;
  std::uint64_t oldest_good_epoch_ = 0;
  struct epoch_end {
    step_id last;
    bool is_good_later = false;
  };
  std::deque<epoch_end> epoch_ends_;  // that are to come
  std::uint64_t num_steps_ = 0;
  std::uint64_t num_verified_ = 0;
  std::unordered_map<request_id, sequence> sequences_;
  std::map<std::vector<token_id>, forced_tokens> scripts_;
  std::vector<block_use> uses_;  // by block
  std::vector<std::string> violations_;
  std::size_t num_violations_ = 0;
};

}  // namespace sluice::inline v0
