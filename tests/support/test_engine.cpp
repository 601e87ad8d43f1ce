// SPDX-License-Identifier: Apache-2.0
#include "test_engine.hpp"

#include <algorithm>

#include <sluice/actors/executor/executor_actor.hpp>
#include <sluice/actors/request/request_actor.hpp>
#include <sluice/actors/scheduler/host_tier_index.hpp>
#include <sluice/runtime/supervisor_actor.hpp>

namespace sluice::testing {

namespace {

class recording_sink final : public request_sink {
 public:
  explicit recording_sink(std::shared_ptr<client_record> record) : record_(std::move(record)) {}
  void delta(const token_delta& delta) override {
    record_->tokens.insert(record_->tokens.end(), delta.tokens.begin(), delta.tokens.end());
    record_->text += delta.text;
  }
  void finished(const request_summary& summary) override {
    record_->text += summary.text;
    record_->summary = summary;
    ++record_->num_terminal_events;
  }

 private:
  std::shared_ptr<client_record> record_;
};

template <class T>
T take(tl::expected<T, gpu::error> value) {
  if (!value) throw std::runtime_error(to_string(value.error()));
  return std::move(*value);
}

deterministic_system::configure_fn register_messages() {
  return [](caf::actor_system_config& config) {
    compat::register_types<caf::id_block::sluice>(config);
    compat::register_error_codes<errc>(config);
  };
}

}  // namespace

test_engine::test_engine(engine_options engine_options)
    : options(std::move(engine_options)), model(options.model), system(register_messages()) {
  make_memory();
  spawn_actors();
}

test_engine::~test_engine() {
  if (failures.empty() && !::testing::Test::HasFatalFailure()) check_end();
  if (supervisor) compat::send_exit(supervisor, caf::make_error(caf::exit_reason::kill));
  system.run_all();  // nobody is to be replaced any more
  system.end_all();
}

scheduler_config test_engine::config() const {
  scheduler_config config;
  config.model = model.info();
  config.kv = model.kv(options.block_size);
  config.num_device_blocks = options.num_device_blocks;
  config.num_host_slots = options.num_host_slots;
  config.blocks_per_chunk = options.blocks_per_chunk;
  config.enable_prefix_caching = options.enable_prefix_caching;
  config.max_model_len = options.max_model_len;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = options.max_num_batched_tokens;
  config.async_scheduling = options.async_scheduling;
  options.adjust(config);
  return config;
}

void test_engine::make_memory() {
  const auto bytes_per_block = model.kv(options.block_size).bytes_per_block;
  pool_memory = take(device.allocate_device(bytes_per_block * options.num_device_blocks));
  tier_memory = take(device.allocate_host(bytes_per_block * options.blocks_per_chunk *
                                          std::max<std::uint32_t>(options.num_host_slots, 1)));
  compute_stream = take(device.make_stream("compute"));
  load_stream = take(device.make_stream("load"));
  store_stream = take(device.make_stream("store"));
  if (!options.holds_compute) device.set_inline("compute");
  model.bind(device_kv());
}

/// All groups have their blocks in the one pool.
kv_memory test_engine::device_kv() {
  const auto spec = model.kv(options.block_size);
  const kv_segment whole{pool_memory.view().data, spec.bytes_per_block, spec.bytes_per_block};
  return {options.num_device_blocks, {spec.groups.size(), {whole}}};
}

void test_engine::spawn_actors() {
  const auto bytes_per_block = model.kv(options.block_size).bytes_per_block;
  const transfer_memory memory{device_kv(), tier_memory.view(), bytes_per_block, options.blocks_per_chunk};
  auto tier = std::move(options.tier);
  if (!tier && options.num_host_slots > 0)
    tier = std::make_unique<host_tier_index>(options.num_host_slots, make_lru_policy(options.num_host_slots));
  auto core = std::make_unique<scheduler_core>(config(), std::move(tier),
                                               options.observer != nullptr ? *options.observer : nobody());
  core_ = core.get();
  scheduler_hooks hooks;
  hooks.on_events = [this](const std::vector<kv_event>& more) { events.insert(events.end(), more.begin(), more.end()); };
  hooks.on_violation = [this](const invariant_violation& violation) { violations.push_back(violation.what); };
  scheduler = system.spawn<scheduler_actor, scheduler_actor_state>(std::move(core), std::chrono::hours{1},
                                                                   std::move(hooks));
  loader = system.spawn<load_actor, load_actor_state>(scheduler, stream_lease{&device, load_stream.get()}, memory);
  storer = system.spawn<store_actor, store_actor_state>(scheduler, stream_lease{&device, store_stream.get()}, memory);
  executor = system.spawn<executor_actor, executor_actor_state>(
      scheduler, &model, stream_lease{&device, compute_stream.get()}, pool_memory.view());
  if (options.has_fake_handler) {
    handler_probe = std::make_unique<probe<preemption_handler>>(system);
    handler = handler_probe->handle();
  } else {
    handler = system.spawn<preemption_handler, preemption_handler_state>(loader, storer, preemption);
  }
  if (options.is_supervised) spawn_supervisor(memory);
  system.before_turn = [this] { watch_traffic(); };
  compat::anon_mail(connect_engine{loader, storer, handler, executor}).send(scheduler);
  system.run_all();
}

void test_engine::spawn_supervisor(const transfer_memory& memory) {
  supervised_engine engine{scheduler, {loader, storer, handler, executor}, {}, {}};
  engine.make_loads = [this, memory] {
    const stream_lease lease{&device, load_stream.get()};
    return loader = system.spawn<load_actor, load_actor_state>(scheduler, lease, memory);
  };
  engine.make_stores = [this, memory] {
    const stream_lease lease{&device, store_stream.get()};
    return storer = system.spawn<store_actor, store_actor_state>(scheduler, lease, memory);
  };
  supervisor_options watching;
  watching.on_failure = [this](const error& failure) { failures.push_back(failure); };
  watching.on_restart = [this](const std::string& what) { restarts.push_back(what); };
  supervisor = system.spawn<supervisor_actor, supervisor_actor_state>(std::move(engine), std::move(watching));
}

request_id test_engine::submit(std::vector<token_id> prompt, std::uint32_t max_tokens, std::vector<std::string> stop,
                               std::string salt) {
  request_params params_of_it;
  params_of_it.prompt = std::move(prompt);
  params_of_it.max_tokens = max_tokens;
  params_of_it.cache_salt = std::move(salt);
  return submit(std::move(params_of_it), std::move(stop));
}

request_id test_engine::submit(request_params request, std::vector<std::string> stop) {
  request_setup setup;
  setup.params = std::move(request);
  setup.params.id = {++last_request_};
  setup.stop = std::move(stop);
  setup.text = std::make_shared<byte_tokenizer>();
  const auto id = setup.params.id;
  model.expect(id, setup.params.prompt);
  params[id] = setup.params;
  records[id] = std::make_shared<client_record>();
  setup.sink = std::make_shared<recording_sink>(records[id]);
  setup.on_end = [](request_id) {};
  clients[id] = system.spawn<request_actor, request_actor_state>(scheduler, std::move(setup));
  return id;
}

void test_engine::run_to_idle() {
  do
    if (system.run_all() >= deterministic_system::max_steps) return;  // has failed
  while (device.run_everything() > 0 || system.num_pending() > 0);
}

void test_engine::run_past_pauses() {
  for (int i = 0; i < 10; ++i) {
    run_to_idle();
    system.advance(std::chrono::milliseconds{100});
  }
  run_to_idle();
}

void test_engine::run_step() {
  const auto before = core_->snapshot().totals.steps;
  system.run_until([&] { return core_->snapshot().totals.steps > before; });
}

bool test_engine::run_until_tokens(request_id id, std::uint32_t num_tokens) {
  return system.run_until([&] {
    const auto found = request(id);
    return found && found->num_tokens >= num_tokens;
  });
}

bool test_engine::run_until_boundary() {
  return system.run_until([&] { return core_->is_boundary_open(); });
}

void test_engine::abort(request_id id) { compat::anon_mail(client_gone{}).send(clients.at(id)); }

reset_report test_engine::reset(bool reset_running_requests, bool reset_external) {
  post_reset(reset_running_requests, reset_external);
  EXPECT_TRUE(system.run_until([&] { return last_reset->has_value(); })) << "the reset was not answered";
  return last_reset->value_or(reset_report{});
}

void test_engine::complete(transfer_id id) {
  const auto done = device.complete_copies(id.value);
  EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
  system.run_all();
}

void test_engine::fail(transfer_id id, std::size_t num_good_copies) {
  const auto done = device.fail_copies(id.value, num_good_copies, gpu::manual::bad_copy::torn);
  EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
  system.run_all();
}

engine_snapshot test_engine::snapshot() { return core_->snapshot(); }
std::vector<std::string> test_engine::faults() { return core_->check(); }

std::optional<request_snapshot> test_engine::request(request_id id) {
  for (auto& request : snapshot().requests)
    if (request.id == id) return request;
  return std::nullopt;
}

std::vector<transfer_id> test_engine::loads() {
  std::vector<transfer_id> ids;
  for (const auto& transfer : snapshot().transfers)
    if (transfer.direction == transfer_direction::load) ids.push_back(transfer.id);
  return ids;
}

std::vector<transfer_id> test_engine::stores() {
  std::vector<transfer_id> ids;
  for (const auto& transfer : snapshot().transfers)
    if (transfer.direction == transfer_direction::store) ids.push_back(transfer.id);
  return ids;
}

std::vector<token_id> test_engine::reference(request_id id) const { return model.reference(params.at(id)); }

void test_engine::expect_reference(request_id id) const {
  ASSERT_TRUE(has_ended(id)) << "request " << id.value << " has not ended";
  EXPECT_EQ(record(id).tokens, reference(id)) << "request " << id.value;
}

void test_engine::end_at(std::vector<token_id> prompt, std::uint32_t position) {
  model.script(std::move(prompt), {{position, model.info().end_tokens.at(0)}});
}

request_id test_engine::complete_request(std::vector<token_id> prompt, std::uint32_t max_tokens) {
  const auto id = submit(std::move(prompt), max_tokens);
  run_to_idle();
  EXPECT_TRUE(has_ended(id));
  return id;
}

void test_engine::warm_host(const std::vector<token_id>& tokens) {
  complete_request(tokens, 1);
  EXPECT_TRUE(reset(false, false).success);
}

void test_engine::check_end() {
  run_to_idle();
  const auto num_groups = static_cast<std::uint32_t>(model.kv(options.block_size).groups.size());
  const auto capacity = (options.num_device_blocks - 1) / num_groups * options.block_size;
  const auto last = complete_request(make_prompt(std::min(options.block_size + 1, capacity - 1), 77), 2);
  expect_reference(last);
  const auto end = snapshot();
  EXPECT_TRUE(end.is_idle) << end.requests.size() << " requests and " << end.transfers.size() << " transfers are left";
  EXPECT_EQ(end.blocks.held, 0U);
  EXPECT_EQ(end.blocks.quarantined, 0U);
  EXPECT_EQ(end.blocks.free + end.blocks.cached, options.num_device_blocks - 1);
  EXPECT_EQ(end.slots.pinned, 0U);
  EXPECT_EQ(faults(), std::vector<std::string>{});
  EXPECT_EQ(violations, std::vector<std::string>{});
  EXPECT_EQ(model.violations(), std::vector<std::string>{});
  for (const auto& [id, record] : records)
    EXPECT_EQ(record->num_terminal_events, 1U) << "terminal events of request " << id.value;
}

engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_device_blocks) {
  engine_options options;
  options.block_size = block_size;
  options.blocks_per_chunk = blocks_per_chunk;
  options.num_device_blocks = num_device_blocks;
  return options;
}

std::vector<token_id> make_prompt(std::size_t num_tokens, token_id first) {
  std::vector<token_id> tokens(num_tokens);
  for (std::size_t i = 0; i < num_tokens; ++i) tokens[i] = static_cast<token_id>((first + i) % 250);
  return tokens;
}

std::vector<token_id> operator+(std::vector<token_id> tokens, const std::vector<token_id>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

}  // namespace sluice::testing
