// SPDX-License-Identifier: Apache-2.0
//
// What a test tells the checking executor and asks of it.
#include <utility>

#include "checking_content.hpp"
#include "checking_executor.hpp"

namespace sluice::inline v0 {

using namespace checking_content;

void checking_executor::expect(request_id request, const std::vector<token_id>& prompt) {
  std::lock_guard lock(mutex_);
  auto& known = sequences_[request];
  known = {};
  for (const auto token : prompt) append(known, token);
}

void checking_executor::forget(request_id request) {
  std::lock_guard lock(mutex_);
  sequences_.erase(request);
}

void checking_executor::script(std::vector<token_id> prompt, forced_tokens forced) {
  std::lock_guard lock(mutex_);
  scripts_[std::move(prompt)] = std::move(forced);
}

void checking_executor::begin_epoch_after(step_id last) {
  std::lock_guard lock(mutex_);
  end_epoch_after(last, false);
}

std::uint64_t checking_executor::mark_epoch_after(step_id last) {
  std::lock_guard lock(mutex_);
  return end_epoch_after(last, true);
}

std::uint64_t checking_executor::end_epoch_after(step_id last, bool is_good_later) {
  if (epoch_ends_.empty() || epoch_ends_.back().last < last)
    epoch_ends_.push_back({last, is_good_later});
  else
    epoch_ends_.back().is_good_later = epoch_ends_.back().is_good_later && is_good_later;
  return epoch_ + epoch_ends_.size();
}

std::optional<std::uint64_t> checking_executor::oldest_epoch(std::size_t group, std::span<const std::byte> block) const {
  std::lock_guard lock(mutex_);
  auto oldest = epoch_;
  for (std::uint32_t position = 0; position < memory_.block_size(group); ++position) {
    const auto is_of = [&](std::uint64_t epoch) {
      const auto chain = [&](std::size_t i) {
        return chain_of(memory_.word_of_block(group, block, position, i) ^ epoch_mask(epoch), i);
      };
      return chain(0) == chain(1);
    };
    auto epoch = epoch_;
    while (epoch > 0 && !is_of(epoch)) --epoch;
    if (!is_of(epoch)) return std::nullopt;
    oldest = std::min(oldest, epoch);
  }
  return oldest;
}

void checking_executor::begin_epoch() {
  std::lock_guard lock(mutex_);
  oldest_good_epoch_ = ++epoch_;
}

std::vector<token_id> checking_executor::reference(const request_params& params) const {
  std::lock_guard lock(mutex_);
  std::vector<token_id> output;
  auto tokens = params.prompt;
  std::uint64_t chain = chain_root;
  std::uint64_t fold = 0;
  for (std::size_t position = 0; output.size() < params.max_tokens; ++position) {
    chain = next_chain(chain, tokens[position], position);
    fold = fold_position(fold, chain, num_words_);
    if (position + 1 < tokens.size()) continue;
    const auto output_position = static_cast<std::uint32_t>(output.size());
    const auto token = next_token(fold, params.sampling, output_position, tokens, params.prompt.size());
    output.push_back(token);
    tokens.push_back(token);
    if (token == options_.end_token && !params.ignore_eos) break;
  }
  return output;
}

std::vector<token_id> checking_executor::reference(const std::vector<token_id>& prompt,
                                                   std::uint32_t num_tokens) const {
  return reference(request_params{{}, prompt, num_tokens, {}, false, {}});
}

std::vector<std::string> checking_executor::violations() const {
  std::lock_guard lock(mutex_);
  return violations_;
}

std::size_t checking_executor::num_violations() const {
  std::lock_guard lock(mutex_);
  return num_violations_;
}

std::uint64_t checking_executor::num_verified_positions() const {
  std::lock_guard lock(mutex_);
  return num_verified_;
}

}  // namespace sluice::inline v0
