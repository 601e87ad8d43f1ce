// SPDX-License-Identifier: Apache-2.0
#include "checking_executor.hpp"

#include <cassert>
#include <thread>
#include <utility>

#include "checking_content.hpp"

namespace sluice::inline v0 {

using namespace checking_content;

checking_executor::checking_executor(checking_executor_options options)
    : options_(std::move(options)), num_words_(options_.bytes_per_token / word_bytes) {
  assert(options_.bytes_per_token % word_bytes == 0 && num_words_ > 0);
  assert(!options_.groups.empty());
}

model_info checking_executor::info() const {
  return {"checking", "hash64", options_.max_model_len, options_.vocab_size, {options_.end_token}};
}

kv_spec checking_executor::kv(std::uint32_t block_size) const {
  auto groups = options_.groups;
  if (groups.size() == 1) groups[0].block_size = block_size;
  const auto block_bytes = checking_memory::bytes_per_block(groups, options_.bytes_per_token);
  return {std::move(groups), block_bytes};
}

void checking_executor::bind(const kv_memory& memory) {
  std::lock_guard lock(mutex_);
  memory_.bind(memory, options_.groups, options_.bytes_per_token);
  uses_.assign(memory.num_blocks, {});
}

gpu::status checking_executor::enqueue(const step_batch& batch, const std::vector<sampled_token>& previous,
                                       gpu::stream& compute, std::vector<sampled_token>& sampled) {
  return compute.enqueue_function([this, &batch, &previous, &sampled] {
    const auto start = std::chrono::steady_clock::now();
    run(batch, previous, sampled);
    if (options_.min_step.count() > 0) std::this_thread::sleep_until(start + options_.min_step);
  });
}

void checking_executor::run(const step_batch& batch, const std::vector<sampled_token>& previous,
                            std::vector<sampled_token>& sampled) {
  std::lock_guard lock(mutex_);
  ++num_steps_;
  for (; !epoch_ends_.empty() && batch.step > epoch_ends_.front().last; epoch_ends_.pop_front()) {
    ++epoch_;
    if (!epoch_ends_.front().is_good_later) oldest_good_epoch_ = epoch_;
  }
  auto entries = batch.entries;
  std::vector<reading> readings;
  readings.reserve(entries.size());
  for (auto& entry : entries) {
    resolve(entry, previous);
    readings.push_back(read_prefix(entry));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) compute(entries[i], readings[i], sampled);
}

void checking_executor::resolve(batch_entry& entry, const std::vector<sampled_token>& previous) {
  if (entry.tokens.empty() || entry.tokens.back() != pending_token) return;
  if (entry.previous_sample >= previous.size())
    return report(entry.request, "its pending token is sample " + std::to_string(entry.previous_sample) +
                                     " of the step before, which has " + std::to_string(previous.size()));
  const auto& sample = previous[entry.previous_sample];
  if (sample.request != entry.request || sample.attempt != entry.attempt)
    report(entry.request, "its pending token was sampled for request " + std::to_string(sample.request.value) +
                              " attempt " + std::to_string(sample.attempt.value));
  entry.tokens.back() = sample.token;
}

checking_executor::reading checking_executor::read_prefix(const batch_entry& entry) {
  reading state{chain_root, 0};
  std::vector<block_cursor> cursors(memory_.num_groups());
  for (std::uint32_t position = 0; position < entry.first_position; ++position) {
    if (position >= sequences_[entry.request].tokens.size()) learn(entry, position);
    const auto chain = sequences_[entry.request].chain.at(position);
    state.last_chain = chain;
    for (std::size_t g = memory_.num_groups(); g-- > 0;)
      if (position >= memory_.first_read_at(g, entry.first_position)) read_position(entry, g, position, cursors[g], state);
    state.fold = fold_position(state.fold, chain, num_words_);
  }
  state.fold += state.fault;
  return state;
}

void checking_executor::read_position(const batch_entry& entry, std::size_t group, std::uint32_t position,
                                      block_cursor& cursor, reading& state) {
  const bool is_first = position == memory_.first_read_at(group, entry.first_position);
  if (is_first || position % memory_.block_size(group) == 0) {
    cursor.block = find_block(entry, group, position);
    cursor.is_reported = !cursor.block;
    if (cursor.block) mark_read(*cursor.block, entry.request);
  }
  if (!cursor.block) return;
  const auto& known = sequences_[entry.request];
  for (std::size_t i = 0; i < memory_.num_words(group); ++i) {
    const auto raw = memory_.load_word(group, *cursor.block, position, i);
    const auto expected = word_of(known.chain.at(position), i);
    const auto word = unmask(raw, expected);
    if (i == 0) state.last_chain = word;
    if (word == expected) continue;
    state.fault = mix(state.fault + word + 1);
    if (std::exchange(cursor.is_reported, true)) continue;
    const auto where = memory_.num_groups() > 1 ? "group " + std::to_string(group) + " " : std::string{};
    report(entry.request, where + at(position, *cursor.block) + " word " + std::to_string(i) + ": expected " +
                              hex(expected) + ", found " + hex(word) + describe_content(raw, i));
  }
  ++num_verified_;
}

void checking_executor::compute(const batch_entry& entry, reading state, std::vector<sampled_token>& sampled) {
  auto& known = sequences_[entry.request];
  auto position = entry.first_position;
  std::vector<std::optional<block_id>> blocks(memory_.num_groups());
  for (const auto token : entry.tokens) {
    for (std::size_t g = 0; g < blocks.size(); ++g)
      if (position == entry.first_position || position % memory_.block_size(g) == 0) {
        blocks[g] = find_block(entry, g, position);
        if (blocks[g]) mark_written(*blocks[g], entry.request);
      }
    if (token < 0 || static_cast<std::uint32_t>(token) >= options_.vocab_size)
      report(entry.request, at(position) + ": no such token: " + std::to_string(token));
    if (position == known.tokens.size()) append(known, token);
    if (position < known.tokens.size() && known.tokens[position] != token)
      report(entry.request, at(position) + ": token " + std::to_string(token) + " given, its history has " +
                                std::to_string(known.tokens[position]));
    state.last_chain = next_chain(state.last_chain, token, position);
    state.fold = fold_position(state.fold, state.last_chain, num_words_);
    for (std::size_t g = 0; g < blocks.size(); ++g)
      if (blocks[g]) write_position(g, *blocks[g], position, state.last_chain);
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

std::optional<block_id> checking_executor::find_block(const batch_entry& entry, std::size_t group,
                                                      std::uint32_t position, bool reports) {
  const auto index = position / memory_.block_size(group);
  const bool has_tables = entry.block_tables.size() == memory_.num_groups();
  if (!has_tables || index >= entry.block_tables[group].size()) {
    if (reports) report(entry.request, at(position) + ": the block table does not cover it");
    return std::nullopt;
  }
  const auto block = entry.block_tables[group][index];
  if (block == null_block || block.value >= memory_.num_blocks()) {
    if (reports) report(entry.request, at(position, block) + ": the null block, or no block at all");
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

void checking_executor::write_position(std::size_t group, block_id block, std::uint32_t position,
                                       std::uint64_t chain) {
  for (std::size_t i = 0; i < memory_.num_words(group); ++i)
    memory_.store_word(group, block, position, i, word_of(chain, i) ^ epoch_mask(epoch_));
}

void checking_executor::append(sequence& known, token_id token, std::optional<std::uint64_t> chain) const {
  const auto previous = known.chain.empty() ? chain_root : known.chain.back();
  known.chain.push_back(chain ? *chain : next_chain(previous, token, known.tokens.size()));
  known.fold.push_back(fold_position(known.fold.empty() ? 0 : known.fold.back(), known.chain.back(), num_words_));
  known.tokens.push_back(token);
}

void checking_executor::learn(const batch_entry& entry, std::uint32_t position) {
  auto& known = sequences_[entry.request];
  const auto previous = known.chain.empty() ? chain_root : known.chain.back();
  std::optional<block_id> block;
  std::uint64_t raw = 0;
  for (std::size_t g = 0; g < memory_.num_groups() && !block; ++g) {
    if (position < memory_.first_read_at(g, entry.first_position)) continue;
    block = find_block(entry, g, position, false);
    if (block) raw = memory_.load_word(g, *block, position, 0);
  }
  for (auto epoch = epoch_ + 1; block && epoch-- > oldest_good_epoch_;)
    for (token_id token = 0; token < static_cast<token_id>(options_.vocab_size); ++token)
      if (next_chain(previous, token, position) == (raw ^ epoch_mask(epoch))) return append(known, token);
  const auto found = raw ^ epoch_mask(epoch_);
  if (block)
    report(entry.request, at(position, *block) + ": expected a continuation of its prefix, found " + hex(found) +
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

std::uint64_t checking_executor::unmask(std::uint64_t raw, std::uint64_t expected) const {
  for (auto epoch = epoch_ + 1; epoch-- > oldest_good_epoch_;)
    if ((raw ^ epoch_mask(epoch)) == expected) return expected;
  return raw ^ epoch_mask(epoch_);
}

std::string checking_executor::describe_content(std::uint64_t raw, std::size_t word) const {
  if (violations_.size() >= options_.max_violations) return {};
  for (auto epoch = epoch_ + 1; epoch-- > 0;) {
    const auto chain = chain_of(raw ^ epoch_mask(epoch), word);
    for (const auto& [request, known] : sequences_)
      for (std::size_t position = 0; position < known.chain.size(); ++position)
        if (known.chain[position] == chain)
          return " (content of request " + std::to_string(request.value) + " position " + std::to_string(position) +
                 (epoch >= oldest_good_epoch_ ? ")" : ", of an older epoch)");
  }
  return raw == 0 ? " (zeros)" : " (unknown content)";
}

void checking_executor::report(request_id request, const std::string& what) {
  ++num_violations_;
  if (violations_.size() < options_.max_violations)
    violations_.push_back("request " + std::to_string(request.value) + " " + what);
}

}  // namespace sluice::inline v0
