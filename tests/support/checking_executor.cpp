// SPDX-License-Identifier: Apache-2.0
#include "checking_executor.hpp"

#include <cassert>
#include <cstring>
#include <thread>
#include <utility>

#include "checking_content.hpp"

namespace sluice::inline v0 {

using namespace checking_content;

checking_executor::checking_executor(checking_executor_options options)
    : options_(std::move(options)), num_words_(options_.bytes_per_token / word_bytes) {
  assert(options_.bytes_per_token % word_bytes == 0 && num_words_ > 0);
  assert(options_.groups.size() == 1 && options_.groups[0].attention == kv_group_spec::kind::full_attention);
}

model_info checking_executor::info() const {
  return {"checking", "hash64", options_.max_model_len, options_.vocab_size, {options_.end_token}};
}

kv_spec checking_executor::kv(std::uint32_t block_size) const {
  kv_spec spec{options_.groups, block_size * options_.bytes_per_token};
  spec.groups[0].block_size = block_size;
  return spec;
}

void checking_executor::bind(const kv_memory& memory) {
  std::lock_guard lock(mutex_);
  memory_ = memory;
  std::size_t block_bytes = 0;
  for (const auto& segment : memory.segments.at(0)) block_bytes += segment.bytes_per_block;
  block_size_ = static_cast<std::uint32_t>(block_bytes / options_.bytes_per_token);
  uses_.assign(memory.num_blocks, {});
}

gpu::status checking_executor::enqueue(const step_batch& batch, gpu::stream& compute,
                                       std::vector<sampled_token>& sampled) {
  return compute.enqueue_function([this, &batch, &sampled] {
    const auto start = std::chrono::steady_clock::now();
    run(batch, sampled);
    if (options_.min_step.count() > 0) std::this_thread::sleep_until(start + options_.min_step);
  });
}

void checking_executor::run(const step_batch& batch, std::vector<sampled_token>& sampled) {
  std::lock_guard lock(mutex_);
  ++num_steps_;
  std::vector<reading> readings;
  readings.reserve(batch.entries.size());
  for (const auto& entry : batch.entries) readings.push_back(read_prefix(entry));
  for (std::size_t i = 0; i < batch.entries.size(); ++i) compute(batch.entries[i], readings[i], sampled);
}

checking_executor::reading checking_executor::read_prefix(const batch_entry& entry) {
  auto& known = sequences_[entry.request];
  reading state{chain_root, 0};
  std::optional<block_id> block;
  bool is_reported = false;  // one report per block
  for (std::uint32_t position = 0; position < entry.first_position; ++position) {
    if (position % block_size_ == 0) {
      block = find_block(entry, position);
      is_reported = !block;
      if (block) mark_read(*block, entry.request);
    }
    if (position >= known.tokens.size()) learn(entry.request, known, block);
    if (!block) continue;
    std::uint64_t digest = 0;
    for (std::size_t i = 0; i < num_words_; ++i) {
      const auto raw = load_word(*block, position, i);
      const auto word = raw ^ epoch_mask(epoch_);
      const auto expected = word_of(known.chain.at(position), i);
      if (word != expected && !std::exchange(is_reported, true)) {
        report(entry.request, at(position, *block) + " word " + std::to_string(i) + ": expected " + hex(expected) +
                                  ", found " + hex(word) + describe_content(raw, i));
      }
      if (i == 0) state.last_chain = word;
      digest = fold_word(digest, word);
    }
    state.fold = mix(state.fold + digest);
    ++num_verified_;
  }
  return state;
}

void checking_executor::compute(const batch_entry& entry, reading state, std::vector<sampled_token>& sampled) {
  auto& known = sequences_[entry.request];
  auto position = entry.first_position;
  std::optional<block_id> block;
  for (const auto token : entry.tokens) {
    if (position == entry.first_position || position % block_size_ == 0) {
      block = find_block(entry, position);
      if (block) mark_written(*block, entry.request);
    }
    if (token < 0 || static_cast<std::uint32_t>(token) >= options_.vocab_size)
      report(entry.request, at(position) + ": no such token: " + std::to_string(token));
    if (position == known.tokens.size()) append(known, token);
    if (position < known.tokens.size() && known.tokens[position] != token)
      report(entry.request, at(position) + ": token " + std::to_string(token) + " given, its history has " +
                                std::to_string(known.tokens[position]));
    state.last_chain = next_chain(state.last_chain, token, position);
    state.fold = fold_position(state.fold, state.last_chain, num_words_);
    if (block) write_position(*block, position, state.last_chain);
    ++position;
  }
  if (position > options_.max_model_len)
    report(entry.request, "longer than max_model_len: " + std::to_string(position));
  if (entry.samples) sample(entry, state.fold, sampled);
}

void checking_executor::sample(const batch_entry& entry, std::uint64_t fold, std::vector<sampled_token>& sampled) {
  auto& known = sequences_[entry.request];
  const std::size_t num_tokens = entry.first_position + entry.tokens.size();
  if (entry.output_position >= num_tokens) {
    report(entry.request, "output position " + std::to_string(entry.output_position) + " leaves no prompt");
    return;
  }
  const auto draw = [&](std::uint64_t from) {
    return next_token(from, entry.sampling, entry.output_position, known.tokens, num_tokens - entry.output_position);
  };
  const auto token = draw(fold);
  const auto right_fold = known.fold.size() < num_tokens ? fold : known.fold[num_tokens - 1];
  if (known.tokens.size() == num_tokens) append(known, draw(right_fold));
  if (fold == right_fold && known.tokens.size() > num_tokens && known.tokens[num_tokens] != token)
    report(entry.request, at(static_cast<std::uint32_t>(num_tokens)) + ": sampled token " + std::to_string(token) +
                              ", its history has " + std::to_string(known.tokens[num_tokens]));
  sampled.push_back({entry.request, entry.attempt, token});
}

std::optional<block_id> checking_executor::find_block(const batch_entry& entry, std::uint32_t position) {
  const auto index = position / block_size_;
  const auto* table = entry.block_tables.size() == 1 ? &entry.block_tables[0] : nullptr;
  if (table == nullptr || index >= table->size()) {
    report(entry.request, at(position) + ": the block table does not cover it");
    return std::nullopt;
  }
  const auto block = (*table)[index];
  if (block == null_block || block.value >= memory_.num_blocks) {
    report(entry.request, at(position, block) + ": the null block, or no block at all");
    return std::nullopt;
  }
  return block;
}

void checking_executor::mark_read(block_id block, request_id request) {
  auto& use = uses_[block.value];
  if (use.step != num_steps_) use = {num_steps_, request, {}, false};
  if (use.reader != request) use.has_many_readers = true;
}

void checking_executor::mark_written(block_id block, request_id request) {
  auto& use = uses_[block.value];
  if (use.step != num_steps_) use = {num_steps_, request, {}, false};
  const bool is_read = use.has_many_readers || use.reader != request;
  const bool is_written = use.writer != request_id{} && use.writer != request;
  use.writer = request;
  if (!is_read && !is_written) return;
  report(request, "block " + std::to_string(block.value) + ": written while another request, such as " +
                      std::to_string(use.reader.value) + ", uses it in the same step");
}

std::byte* checking_executor::word_at(block_id block, std::uint32_t position, std::size_t index) const {
  auto offset = position % block_size_ * options_.bytes_per_token + index * word_bytes;
  for (const auto& segment : memory_.segments[0]) {
    if (offset < segment.bytes_per_block) return segment.base + block.value * segment.stride_bytes + offset;
    offset -= segment.bytes_per_block;
  }
  return nullptr;
}

std::uint64_t checking_executor::load_word(block_id block, std::uint32_t position, std::size_t index) const {
  std::uint64_t word = 0;
  std::memcpy(&word, word_at(block, position, index), word_bytes);
  return word;
}

void checking_executor::write_position(block_id block, std::uint32_t position, std::uint64_t chain) {
  for (std::size_t i = 0; i < num_words_; ++i) {
    const auto word = word_of(chain, i) ^ epoch_mask(epoch_);
    std::memcpy(word_at(block, position, i), &word, word_bytes);
  }
}

void checking_executor::append(sequence& known, token_id token, std::optional<std::uint64_t> chain) const {
  const auto previous = known.chain.empty() ? chain_root : known.chain.back();
  known.chain.push_back(chain ? *chain : next_chain(previous, token, known.tokens.size()));
  known.fold.push_back(fold_position(known.fold.empty() ? 0 : known.fold.back(), known.chain.back(), num_words_));
  known.tokens.push_back(token);
}

void checking_executor::learn(request_id request, sequence& known, std::optional<block_id> block) {
  const auto position = static_cast<std::uint32_t>(known.tokens.size());
  const auto raw = block ? load_word(*block, position, 0) : 0;
  const auto found = raw ^ epoch_mask(epoch_);
  const auto previous = known.chain.empty() ? chain_root : known.chain.back();
  for (token_id token = 0; block && token < static_cast<token_id>(options_.vocab_size); ++token)
    if (next_chain(previous, token, position) == found) return append(known, token);
  if (block)
    report(request, at(position, *block) + ": expected a continuation of its prefix, found " + hex(found) +
                        describe_content(raw, 0));
  append(known, -1, found);
}

token_id checking_executor::next_token(std::uint64_t fold, const sampling_params& sampling,
                                       std::uint32_t output_position, const std::vector<token_id>& tokens,
                                       std::size_t num_prompt_tokens) const {
  if (!scripts_.empty() && num_prompt_tokens <= tokens.size()) {
    const auto prompt_end = tokens.begin() + static_cast<std::ptrdiff_t>(num_prompt_tokens);
    const auto found = scripts_.find(std::vector<token_id>(tokens.begin(), prompt_end));
    if (found != scripts_.end() && found->second.contains(output_position)) return found->second.at(output_position);
  }
  if (sampling.temperature > 0) fold = mix(fold + mix(sampling.seed + output_position * word_step));
  return draw_token(fold, options_.vocab_size, options_.end_token, options_.end_one_in);
}

std::string checking_executor::describe_content(std::uint64_t raw, std::size_t word) const {
  if (violations_.size() >= options_.max_violations) return {};
  for (auto epoch = epoch_ + 1; epoch-- > 0;) {
    const auto chain = chain_of(raw ^ epoch_mask(epoch), word);
    for (const auto& [request, known] : sequences_)
      for (std::size_t position = 0; position < known.chain.size(); ++position)
        if (known.chain[position] == chain)
          return " (content of request " + std::to_string(request.value) + " position " + std::to_string(position) +
                 (epoch == epoch_ ? ")" : ", of an older epoch)");
  }
  return raw == 0 ? " (zeros)" : " (unknown content)";
}

void checking_executor::report(request_id request, const std::string& what) {
  ++num_violations_;
  if (violations_.size() < options_.max_violations)
    violations_.push_back("request " + std::to_string(request.value) + " " + what);
}

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

void checking_executor::begin_epoch() {
  std::lock_guard lock(mutex_);
  ++epoch_;
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
