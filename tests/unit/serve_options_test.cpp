// SPDX-License-Identifier: Apache-2.0
//
// The command line of sluice-serve.
#include <gtest/gtest.h>

#include "serve/options.hpp"

namespace sluice::serve {
namespace {

std::variant<server_options, early_exit> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "sluice-serve");
  return parse_options(static_cast<int>(words.size()), words.data());
}

server_options accepted(const std::vector<const char*>& words) {
  const auto parsed = parse(words);
  if (const auto* early = std::get_if<early_exit>(&parsed)) throw std::runtime_error{early->text};
  return std::get<server_options>(parsed);
}

early_exit refused(const std::vector<const char*>& words) {
  const auto parsed = parse(words);
  if (std::holds_alternative<server_options>(parsed)) throw std::runtime_error{"was accepted"};
  return std::get<early_exit>(parsed);
}

TEST(serve_options, defaults_are_those_of_the_contract) {
  const auto options = accepted({});
  EXPECT_EQ(options.model, "tiny");
  EXPECT_EQ(options.host, "127.0.0.1");
  EXPECT_EQ(options.port, 8000);
  EXPECT_EQ(options.device, "auto");
  EXPECT_EQ(options.engine.block_size, 16u);
  EXPECT_EQ(options.engine.blocks_per_chunk, 1u);
  EXPECT_EQ(options.engine.host_tier_bytes, 4ULL << 30);
  EXPECT_EQ(options.engine.max_num_seqs, 256u);
  EXPECT_EQ(options.engine.max_num_batched_tokens, 2048u);
  EXPECT_EQ(options.engine.max_queued_requests, 1024u);
  EXPECT_TRUE(options.engine.enable_prefix_caching);
  EXPECT_TRUE(options.engine.async_scheduling);
  EXPECT_TRUE(options.engine.preemption_offload);
  EXPECT_FALSE(options.engine.offload_prompt_only);
  EXPECT_FALSE(options.engine.refuse_while_asleep);
  EXPECT_EQ(options.engine.store_threshold, 0u);
  EXPECT_EQ(options.engine.scheduling, scheduling_policy::fcfs);
  EXPECT_EQ(options.engine.eviction_policy, eviction_policy_kind::lru);
  EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds{30});
}

TEST(serve_options, every_value_arrives) {
  const auto options = accepted({"--model",
                                 "tiny",
                                 "--served-model-name",
                                 "m",
                                 "--host",
                                 "0.0.0.0",
                                 "--port=0",
                                 "--device",
                                 "host",
                                 "--block-size",
                                 "32",
                                 "--blocks-per-chunk",
                                 "4",
                                 "--num-gpu-blocks-override",
                                 "320",
                                 "--gpu-memory-utilization",
                                 "0.5",
                                 "--kv-offloading-size",
                                 "0.5",
                                 "--max-model-len",
                                 "100",
                                 "--max-num-seqs",
                                 "2",
                                 "--max-num-batched-tokens",
                                 "64",
                                 "--max-queued-requests",
                                 "7",
                                 "--no-enable-prefix-caching",
                                 "--no-async-scheduling",
                                 "--no-preemption-offload",
                                 "--offload-prompt-only",
                                 "--refuse-while-asleep",
                                 "--offload",
                                 "preempted",
                                 "--eviction-policy",
                                 "arc",
                                 "--store-policy",
                                 "whole-request",
                                 "--store-threshold",
                                 "2",
                                 "--scheduling-policy",
                                 "priority",
                                 "--recompute-budget",
                                 "3",
                                 "--transfer-timeout",
                                 "9",
                                 "--lookup-timeout",
                                 "8",
                                 "--seed",
                                 "18446744073709551615",
                                 "--host-copy-load-gib-s",
                                 "0.25",
                                 "--host-copy-store-gib-s",
                                 "2",
                                 "--host-copy-latency-ms",
                                 "150",
                                 "--tiny-step-ms",
                                 "8",
                                 "--tiny-window",
                                 "256",
                                 "--log-level",
                                 "debug",
                                 "--shutdown-timeout",
                                 "5"});
  EXPECT_EQ(options.served_model_name, "m");
  EXPECT_EQ(options.host, "0.0.0.0");
  EXPECT_EQ(options.port, 0);
  EXPECT_EQ(options.device, "host");
  EXPECT_EQ(options.engine.block_size, 32u);
  EXPECT_EQ(options.engine.blocks_per_chunk, 4u);
  EXPECT_EQ(options.engine.num_device_blocks, 320u);
  EXPECT_EQ(options.engine.device_memory_fraction, 0.5);
  EXPECT_EQ(options.engine.host_tier_bytes, 1ULL << 29);
  EXPECT_EQ(options.engine.max_model_len, 100u);
  EXPECT_EQ(options.engine.max_num_seqs, 2u);
  EXPECT_EQ(options.engine.max_num_batched_tokens, 64u);
  EXPECT_EQ(options.engine.max_queued_requests, 7u);
  EXPECT_FALSE(options.engine.enable_prefix_caching);
  EXPECT_FALSE(options.engine.async_scheduling);
  EXPECT_FALSE(options.engine.preemption_offload);
  EXPECT_TRUE(options.engine.offload_prompt_only);
  EXPECT_TRUE(options.engine.refuse_while_asleep);
  EXPECT_EQ(options.engine.offload, offload_scope::preempted);
  EXPECT_EQ(options.engine.eviction_policy, eviction_policy_kind::arc);
  EXPECT_EQ(options.engine.storing, store_policy::whole_request);
  EXPECT_EQ(options.engine.store_threshold, 2u);
  EXPECT_EQ(options.engine.scheduling, scheduling_policy::priority);
  EXPECT_EQ(options.engine.recompute_budget, 3);
  EXPECT_EQ(options.engine.transfer_timeout, std::chrono::seconds{9});
  EXPECT_EQ(options.engine.lookup_timeout, std::chrono::seconds{8});
  EXPECT_EQ(options.seed, 18446744073709551615ULL);
  EXPECT_EQ(options.host_copy.load_gib_per_s, 0.25);
  EXPECT_EQ(options.host_copy.store_gib_per_s, 2);
  EXPECT_EQ(options.host_copy.latency, std::chrono::milliseconds{150});
  EXPECT_EQ(options.tiny_step, std::chrono::milliseconds{8});
  EXPECT_EQ(options.tiny_window, 256u);
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds{5});
  EXPECT_TRUE(accepted({"--enable-prefix-caching"}).engine.enable_prefix_caching);
}

struct bad_words {
  std::vector<const char*> words;
  const char* line;
};

TEST(serve_options, a_bad_option_is_one_line_and_exit_code_2) {
  const std::vector<bad_words> table{
      {{"--port", "99999"}, "option --port: got '99999', allowed: an integer from 0 to 65535"},
      {{"--port", "-5"}, "option --port: got '-5', allowed: an integer from 0 to 65535"},
      {{"--port=x"}, "option --port: got 'x', allowed: an integer from 0 to 65535"},
      {{"--port", ""}, "option --port: got '', allowed: an integer from 0 to 65535"},
      {{"--port"}, "option --port: got no value, allowed: an integer from 0 to 65535"},
      {{"--port", "--seed", "1"}, "option --port: got no value, allowed: an integer from 0 to 65535"},
      {{"--port", "1", "--port", "2"}, "option --port: got it more than once, allowed: once"},
      {{"--block-size", "0"}, "option --block-size: got '0', allowed: an integer from 1 to 1024"},
      {{"--block-size", "16.5"}, "option --block-size: got '16.5', allowed: an integer from 1 to 1024"},
      {{"--kv-offloading-size", "nan"}, 
       "option --kv-offloading-size: got 'nan', allowed: 0, or a number from 1e-09 to 1000000"},
      {{"--kv-offloading-size", "-1"}, 
       "option --kv-offloading-size: got '-1', allowed: 0, or a number from 1e-09 to 1000000"},
      {{"--kv-offloading-size", "1e-12"},
       "option --kv-offloading-size: got '1e-12', allowed: 0, or a number from 1e-09 to 1000000"},
      {{"--recompute-budget", "-1"}, "option --recompute-budget: got '-1', allowed: an integer from 0 to 4294967294"},
      {{"--transfer-timeout", "0"}, "option --transfer-timeout: got '0', allowed: an integer from 1 to 86400"},
      {{"--tiny-window", "-1"}, "option --tiny-window: got '-1', allowed: an integer from 0 to 4294967295"},
      {{"--scheduling-policy", "lifo"}, "option --scheduling-policy: got 'lifo', allowed: fcfs, priority"},
      {{"--eviction-policy=fifo"}, "option --eviction-policy: got 'fifo', allowed: lru, arc"},
      {{"--offload", "none"}, "option --offload: got 'none', allowed: all, preempted"},
      {{"--async-scheduling", "--no-async-scheduling"},
       "option --no-async-scheduling: got both forms, allowed: one of the two"},
      {{"--gpu-memory-utilization", "0"},
       "option --gpu-memory-utilization: got '0', allowed: a number above 0, up to 1"},
      {{"--device", "cuda"}, "option --device: got 'cuda', allowed: auto, host (cuda is not built yet)"},
      {{"--model", "/m"}, "option --model: got '/m', allowed: tiny (paths to weights are not built yet)"},
      {{"--log-level", "loud"}, "option --log-level: got 'loud', allowed: trace, debug, info, warn, error, off"},
      {{"--api-key=k"}, "option '--api-key=k': got an unknown option, allowed: those that --help lists"},
      {{"tiny"}, "option 'tiny': got an unknown option, allowed: those that --help lists"},
      {{"--enable-prefix-caching=maybe"}, "option --enable-prefix-caching: got 'maybe', allowed: no value"},
      {{"--enable-prefix-caching", "--no-enable-prefix-caching"},
       "option --no-enable-prefix-caching: got both forms, allowed: one of the two"},
  };
  for (const auto& [words, line] : table) {
    const auto exit = refused(words);
    EXPECT_EQ(exit.exit_code, 2);
    EXPECT_EQ(exit.text, "sluice-serve: " + std::string{line} + "\n");
  }
}

// O146, command line. Guards: a policy that does not exist is refused by name, lru is the default, and an option that no
// policy has is named.
TEST(serve_options, o146_host_tier_configuration) {
  const auto bogus = refused({"--eviction-policy", "bogus"});
  EXPECT_EQ(bogus.exit_code, 2);
  EXPECT_EQ(bogus.text, "sluice-serve: option --eviction-policy: got 'bogus', allowed: lru, arc\n");
  EXPECT_EQ(accepted({"--kv-offloading-size", "1"}).engine.eviction_policy, eviction_policy_kind::lru);
  const auto stray = refused({"--eviction-policy", "lru", "--arc-target", "2"});
  EXPECT_EQ(stray.exit_code, 2);
  EXPECT_EQ(stray.text,
            "sluice-serve: option '--arc-target': got an unknown option, allowed: those that --help lists\n");
}

TEST(serve_options, help_lists_what_is_built_and_nothing_else) {
  const auto help = refused({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const auto* name : {"--port", "--kv-offloading-size", "--no-enable-prefix-caching", "--tiny-step-ms",
                           "--tiny-window", "--no-async-scheduling", "--store-policy", "--scheduling-policy",
                           "(default off)"}) {
    EXPECT_NE(help.text.find(name), std::string::npos) << name;
  }
  for (const auto* name : {"api-key", "config", "log-json"}) {
    EXPECT_EQ(help.text.find(name), std::string::npos) << name;
  }
}

// What only the engine can judge is told in the same words.
TEST(serve_options, a_complaint_of_the_engine_names_the_option) {
  EXPECT_EQ(in_option_names("max_model_len is 6000, allowed is 1 to 5104"),
            "--max-model-len is 6000, allowed is 1 to 5104");
  EXPECT_EQ(in_option_names("host_tier_bytes is 100, allowed is 0 or more"),
            "--kv-offloading-size in bytes is 100, allowed is 0 or more");
  EXPECT_EQ(in_option_names("eviction_policy is arc, allowed is lru"), "--eviction-policy is arc, allowed is lru");
  EXPECT_EQ(in_option_names("the model has 2 KV groups"), "the model has 2 KV groups");
}

TEST(serve_options, version) {
  const auto version = refused({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.text, "sluice-serve 0.1.0\n");
}

TEST(serve_options, description_names_every_option) {
  const auto text = describe(accepted({"--kv-offloading-size", "0.5", "--no-enable-prefix-caching"}));
  EXPECT_NE(text.find("kv-offloading-size = 0.5\n"), std::string::npos);
  EXPECT_NE(text.find("enable-prefix-caching = false\n"), std::string::npos);
  EXPECT_NE(text.find("shutdown-timeout = 30\n"), std::string::npos);
  EXPECT_NE(text.find("tiny-window = 0\n"), std::string::npos);
}

}  // namespace
}  // namespace sluice::serve
