// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/prefix_match.hpp>

#include <algorithm>

#include <sluice/actors/rules.hpp>
#include <sluice/actors/scheduler/chunk_scan.hpp>

namespace sluice::inline v0 {

namespace {

constexpr std::uint32_t align_down(std::uint32_t value, std::uint32_t unit) { return value / unit * unit; }

class matcher {
 public:
  matcher(const scheduler_state& state, const pool_overlay& overlay, const planned_loading& planned,
          const request_record& request)
      : state_(state), overlay_(overlay), planned_(planned), request_(request), num_tokens_(request.num_tokens()),
        unit_(state.config.block_alignment()) {
    match_.groups.resize(state.config.num_groups());
    match_.epoch = state.epoch;
    found_.resize(match_.groups.size());
    beginnings_.resize(match_.groups.size());
  }

  prefix_match run() {
    if (!state_.config.enable_prefix_caching || !request_.params.reads_prefix_cache) return std::move(match_);
    const auto cap = align_down(num_tokens_ - holds(rule::compute_last_token), unit_);
    num_shared_ = find_shared(cap);
    num_covered_ = num_shared_;
    if (num_shared_ == 0 || !is_at_cap()) ask_tier();
    if (match_.wait == waiting_reason::none) fill_in();
    return std::move(match_);
  }

 private:
  struct found_block {
    block_id block;
    transfer_id load;  // 0: nothing loads into it
  };

  /// In place of the request's own chunk, which the tier has not: one whose leading blocks are the same.
  struct chunk_beginning {
    std::uint32_t chunk;  // of the request
    chunk_key key;
  };

  group_shape shape(std::size_t g) const { return state_.config.shape(g); }
  const std::vector<content_key>& keys(std::size_t g) const { return request_.groups[g].keys; }

  // -- blocks of the device and of loads in flight ---------------------------------------------------------------

  std::optional<found_block> find(std::size_t g, std::uint32_t position) const {
    const auto& key = keys(g)[position];
    if (const auto block = state_.pool.find(key); block && overlay_.holds_content(*block)) return found_block{*block, {}};
    if (const auto loading = state_.ledger.find_loading(key)) return found_block{loading->block, loading->load};
    if (const auto loading = planned_.find(key); loading != planned_.end())
      return found_block{loading->second.block, loading->second.load};
    return std::nullopt;
  }

  /// The most leading tokens, at most `cap`, that go on in every group.
  std::uint32_t find_shared(std::uint32_t cap) {
    auto num_tokens = cap;
    for (std::size_t g = 0; g < found_.size(); ++g)
      if (!shape(g).is_window()) num_tokens = std::min(num_tokens, scan_full(g, num_tokens));
    for (bool is_stable = false; !is_stable;) {
      is_stable = true;
      for (std::size_t g = 0; g < found_.size(); ++g) {
        if (!shape(g).is_window()) continue;
        const auto fitting = scan_window_blocks(g, num_tokens);
        is_stable = is_stable && fitting == num_tokens;
        num_tokens = fitting;
      }
    }
    return num_tokens;
  }

  std::uint32_t scan_full(std::size_t g, std::uint32_t cap) {
    const auto block_size = shape(g).block_size;
    while (found_[g].size() < cap / block_size) {
      const auto found = find(g, static_cast<std::uint32_t>(found_[g].size()));
      if (!found) break;
      found_[g].push_back(*found);
    }
    return align_down(static_cast<std::uint32_t>(found_[g].size()) * block_size, unit_);
  }

  /// The largest number of tokens up to `num_tokens` whose window is there.
  std::uint32_t scan_window_blocks(std::size_t g, std::uint32_t num_tokens) const {
    const auto group = shape(g);
    auto position = num_tokens / group.block_size;
    while (num_tokens > 0 && position > group.first_block_read_at(num_tokens)) {
      --position;
      if (find(g, position)) continue;
      num_tokens = align_down(position * group.block_size, unit_);
      position = num_tokens / group.block_size;
    }
    return num_tokens;
  }

  /// No group has a whole block left before the last token.
  bool is_at_cap() const {
    for (std::size_t g = 0; g < found_.size(); ++g)
      if (num_shared_ / shape(g).block_size < (num_tokens_ - 1) / shape(g).block_size) return false;
    return true;
  }

  // -- chunks of the tier ----------------------------------------------------------------------------------------

  void ask_tier() {
    if (state_.offload_tier() == nullptr || request_.is_load_refused) return;
    const auto max_load = request_.params.max_load_tokens;
    const auto limit = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(num_tokens_, std::uint64_t{num_shared_} + max_load));
    if (limit <= num_shared_) return;
    const stopwatch time;
    extend_from_tier(limit);
    state_.observer.tier_lookup_took(time.elapsed());
  }

  void extend_from_tier(std::uint32_t limit) {
    std::uint32_t end = limit;
    for (std::size_t g = 0; g < found_.size() && end > num_shared_; ++g)
      end = std::min(end, shape(g).is_window() ? align_down(limit, shape(g).tokens_per_chunk()) : scan_full_chunks(g, limit));
    for (bool is_stable = false; !is_stable && end > num_shared_;) {
      is_stable = true;
      for (std::size_t g = 0; g < found_.size() && end > num_shared_; ++g) {
        if (!shape(g).is_window()) continue;
        const auto fitting = scan_window_chunks(g, end);
        is_stable = is_stable && fitting == end;
        end = fitting;
      }
    }
    num_covered_ = std::max(num_shared_, end);
  }

  lookup_verdict look_up(std::size_t g, std::uint32_t chunk) const {
    const auto verdict = state_.offload_tier()->lookup(key_of_chunk(state_, request_, g, chunk));
    const bool is_known = verdict == lookup_verdict::hit || verdict == lookup_verdict::miss;
    return is_known || !request_.has_waited_enough ? verdict : lookup_verdict::miss;
  }

  /// Tokens up to which the group's chunks can be loaded. 0, and a wait noted, when that is not known yet.
  std::uint32_t scan_full_chunks(std::size_t g, std::uint32_t limit) {
    const auto chunk_tokens = shape(g).tokens_per_chunk();
    const auto outcome = scan_prefix(num_shared_ / chunk_tokens, limit / chunk_tokens, state_.config.recompute_budget,
                                     [&](std::uint32_t chunk) { return look_up(g, chunk); });
    return outcome.is_known() ? extend_into_chunk(g, outcome.end, limit) : wait(g, outcome);
  }

  /// Behind the last chunk that is a hit: leading blocks of the next one that another chunk of the tier begins with.
  std::uint32_t extend_into_chunk(std::size_t g, std::uint32_t chunk, std::uint32_t limit) {
    const auto group = shape(g);
    const auto end = chunk * group.tokens_per_chunk();
    if (!state_.config.matches_chunk_beginnings()) return end;
    auto num_blocks = std::min(group.blocks_per_chunk - 1, (limit - end) / group.block_size);
    for (; num_blocks > 0 && end + num_blocks * group.block_size > num_shared_; --num_blocks) {
      const auto& last = keys(g)[chunk * group.blocks_per_chunk + num_blocks - 1];
      const auto found = state_.offload_tier()->find_beginning(last);
      if (!found) continue;
      beginnings_[g] = {chunk, *found};
      return end + num_blocks * group.block_size;
    }
    return end;
  }

  std::uint32_t scan_window_chunks(std::size_t g, std::uint32_t end) {
    const auto group = shape(g);
    const auto chunk_tokens = group.tokens_per_chunk();
    const auto num_chunks = std::min((end + chunk_tokens - 1) / chunk_tokens, num_tokens_ / chunk_tokens);
    end = std::min(end, num_chunks * chunk_tokens);
    const auto first_read = group.first_block_read_at(std::min(end, num_tokens_ - 1)) / group.blocks_per_chunk;
    const auto outcome = scan_window(num_chunks, group.num_window_chunks(), num_chunks - std::min(first_read, num_chunks),
                                     [&](std::uint32_t chunk) {
                                       const bool is_shared = (chunk + 1) * chunk_tokens <= num_shared_;
                                       return is_shared ? lookup_verdict::hit : look_up(g, chunk);
                                     });
    if (!outcome.is_known()) return wait(g, outcome);
    return outcome.end == num_chunks ? end : outcome.end * chunk_tokens;
  }

  std::uint32_t wait(std::size_t g, const scan_outcome& outcome) {
    switch (outcome.result) {
      case scan_outcome::kind::known: break;
      case scan_outcome::kind::awaits_lookup: match_.wait = waiting_reason::lookup_pending; break;
      case scan_outcome::kind::awaits_store:
        match_.wait = waiting_reason::chunk_pending;
        match_.awaited = key_of_chunk(state_, request_, g, outcome.awaited_chunk);
        break;
    }
    return 0;
  }

  // -- the answer ------------------------------------------------------------------------------------------------

  void fill_in() {
    match_.num_computed_tokens = std::min(num_covered_, num_tokens_ - 1);
    match_.num_device_tokens = num_shared_;
    for (std::size_t g = 0; g < found_.size(); ++g) {
      match_.groups[g].num_passed = shape(g).first_block_read_at(match_.num_computed_tokens);
      share(g);
      if (num_covered_ > num_shared_) load(g);
    }
    const auto& first = match_.groups[0];
    const auto next = std::max(first.num_passed + static_cast<std::uint32_t>(first.shared.size()),
                               first.first_loaded + first.num_loaded);
    if (next < keys(0).size()) match_.missing = keys(0)[next];
  }

  void share(std::size_t g) {
    auto& group = match_.groups[g];
    const auto block_size = shape(g).block_size;
    for (auto position = group.num_passed; position < num_shared_ / block_size; ++position) {
      const auto found = position < found_[g].size() ? found_[g][position] : *find(g, position);
      group.shared.push_back(found.block);
      if (found.load == transfer_id{}) {
        match_.epoch = std::min(match_.epoch, state_.pool.epoch(found.block));
        continue;
      }
      match_.num_device_tokens = std::min(match_.num_device_tokens, position * block_size);
      auto& joined = match_.joined_loads;
      if (std::find(joined.begin(), joined.end(), found.load) == joined.end()) joined.push_back(found.load);
    }
  }

  void load(std::size_t g) {
    auto& group = match_.groups[g];
    const auto end = shape(g).num_blocks_for(num_covered_);
    group.first_loaded = std::max(group.num_passed, num_shared_ / shape(g).block_size);
    if (group.first_loaded >= end) return;
    group.num_loaded = end - group.first_loaded;
    const auto factor = shape(g).blocks_per_chunk;
    for (auto chunk = group.first_loaded / factor; chunk <= (end - 1) / factor; ++chunk)
      group.tier_chunks.push_back(beginnings_[g] && beginnings_[g]->chunk == chunk
                                      ? beginnings_[g]->key
                                      : key_of_chunk(state_, request_, g, chunk));
  }

  const scheduler_state& state_;
  const pool_overlay& overlay_;
  const planned_loading& planned_;
  const request_record& request_;
  const std::uint32_t num_tokens_;
  const std::uint32_t unit_;
  std::vector<std::vector<found_block>> found_;  // of full groups, from the beginning
  std::vector<std::optional<chunk_beginning>> beginnings_;
  std::uint32_t num_shared_ = 0;                 // tokens in shared blocks
  std::uint32_t num_covered_ = 0;                // these, and tokens in chunks of the tier
  prefix_match match_;
};

}  // namespace

prefix_match match_prefix(const scheduler_state& state, const pool_overlay& overlay, const planned_loading& planned,
                          const request_record& request) {
  return matcher(state, overlay, planned, request).run();
}

}  // namespace sluice::inline v0
