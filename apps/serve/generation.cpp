// SPDX-License-Identifier: Apache-2.0
#include "serve/generation.hpp"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "http/unique_id.hpp"
#include "serve/engine_error.hpp"

namespace sluice::serve {
namespace {

std::int64_t unix_seconds() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

std::string label_of(const http::exchange& call, const completion_request& asked) {
  return asked.request_id.empty() ? std::string{call.asked().find("X-Request-Id")} : asked.request_id;
}

const char* to_string(http::gone_reason reason) {
  switch (reason) {
    case http::gone_reason::disconnected: return "disconnected";
    case http::gone_reason::slow_reader: return "slow_reader";
    case http::gone_reason::server_closed: return "server_closed";
  }
  return "gone";
}

}  // namespace

generation::generation(service& api, http::exchange_ptr call, const completion_request& asked)
    : api_{api},
      outputs_{api.outputs},
      call_{std::move(call)},
      identity_{{}, unix_seconds(), api.model_name, api.system_fingerprint},
      label_{label_of(*call_, asked)},
      is_stream_{asked.stream},
      wants_usage_{asked.include_usage},
      wants_token_ids_{asked.return_token_ids},
      accepted_{std::chrono::steady_clock::now()} {
  identity_.id = label_.empty() ? http::unique_id("cmpl-") : "cmpl-" + label_;
}

void generation::begin(request_id id) {
  id_ = id;
  api_.active.add(id);
  call_->on_gone([weak = weak_from_this()](http::gone_reason reason) {
    const auto self = weak.lock();
    if (!self) return;
    self->client_ = to_string(reason);
    self->api_.engine.abort(self->id_);
  });
  if (!is_stream_) return;
  http::response head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers.push_back({"Cache-Control", "no-cache"});
  head.headers.push_back({"X-Accel-Buffering", "no"});
  call_->begin_stream(std::move(head));
}

void generation::delta(const token_delta& output) {
  if (const auto outputs = outputs_.lock()) outputs->push(shared_from_this(), output);
}

void generation::finished(const request_summary& summary) {
  if (const auto outputs = outputs_.lock()) outputs->push(shared_from_this(), summary);
}

void generation::apply(output_event event) {
  if (const auto* output = std::get_if<token_delta>(&event)) {
    add(*output);
  } else {
    finish(std::get<request_summary>(event));
  }
}

void generation::flush() { call_->flush(); }

void generation::add(const token_delta& output) {
  if (!is_stream_) {
    text_ += output.text;
    if (wants_token_ids_) tokens_.insert(tokens_.end(), output.tokens.begin(), output.tokens.end());
    return;
  }
  const bool has_news = !output.text.empty() || (wants_token_ids_ && !output.tokens.empty());
  if (has_news) write_chunk({output.text, {}, wants_token_ids_ ? &output.tokens : nullptr});
}

void generation::finish(const request_summary& summary) {
  if (is_stream_) {
    finish_stream(summary);
  } else {
    finish_answer(summary);
  }
  log_end(summary);
  api_.active.remove(id_);
}

void generation::finish_stream(const request_summary& summary) {
  if (summary.reason == finish_reason::error) {
    call_->write(sse_event(http::to_json(to_api_error(summary.failure))));
    return call_->end_stream(http::after_stream::close);
  }
  const std::vector<token_id> none;
  write_chunk({summary.text, summary.reason, wants_token_ids_ ? &none : nullptr});
  if (wants_usage_) call_->write(sse_event(usage_chunk(identity_, summary.usage)));
  call_->write(sse_done);
  call_->end_stream(http::after_stream::keep);
}

void generation::finish_answer(const request_summary& summary) {
  if (summary.reason == finish_reason::error) return call_->respond(http::to_response(to_api_error(summary.failure)));
  text_ += summary.text;
  tokens_.resize(std::min<std::size_t>(tokens_.size(), summary.usage.num_output_tokens));
  auto body = completion_body(identity_, {text_, summary.reason, wants_token_ids_ ? &tokens_ : nullptr});
  body["usage"] = to_json(summary.usage);
  http::response answer;
  answer.body = http::dump(body);
  call_->respond(std::move(answer));
}

void generation::write_chunk(const completion_choice& choice) {
  call_->write(sse_event(completion_body(identity_, choice)));
}

void generation::log_end(const request_summary& summary) const {
  const auto elapsed = std::chrono::steady_clock::now() - accepted_;
  const auto& usage = summary.usage;
  spdlog::info(
      "request end request_id={} id={} label={} finish={} error={} client={} prompt_tokens={} output_tokens={} "
      "cached_device={} cached_host={} preemptions={} duration_ms={}",
      id_.value, http::quote(identity_.id), http::quote(label_), serve::to_string(summary.reason),
      sluice::to_string(summary.failure.code), client_, usage.num_prompt_tokens, usage.num_output_tokens,
      usage.num_device_cached_tokens, usage.num_host_cached_tokens, usage.num_preemptions,
      std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count());
}

}  // namespace sluice::serve
