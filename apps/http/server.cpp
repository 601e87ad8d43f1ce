// SPDX-License-Identifier: Apache-2.0
#include "http/server.hpp"

#include <unordered_set>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

#include "http/connection.hpp"

namespace sluice::http {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::milliseconds accept_retry{100};

tcp::endpoint resolve(asio::io_context& context, const std::string& host, std::uint16_t port) {
  boost::system::error_code failure;
  const auto address = asio::ip::make_address(host, failure);
  if (!failure) return {address, port};
  tcp::resolver resolver{context};
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, failure);
  if (failure || found.empty()) throw listen_error{"cannot resolve host " + host + ": " + failure.message()};
  return found.begin()->endpoint();
}

}  // namespace

struct server::state : std::enable_shared_from_this<server::state> {
  state(loop& runs_on, handler& answers, const limits& bounds)
      : host{runs_on, answers, bounds, false, {}}, acceptor{runs_on.context()} {
    host.on_closed = [this](const std::shared_ptr<connection>& ended) { on_closed(ended); };
  }

  connection_host host;
  tcp::acceptor acceptor;
  bool is_accepting = false;
  std::unordered_set<std::shared_ptr<connection>> connections;
  timer retry;
  timer deadline;
  std::function<void()> on_empty;

  void accept() {
    if (is_accepting || !acceptor.is_open() || connections.size() >= host.limits.max_connections) return;
    is_accepting = true;
    acceptor.async_accept([self = shared_from_this()](boost::system::error_code failure, tcp::socket socket) {
      self->is_accepting = false;
      if (!self->acceptor.is_open()) return;
      if (failure) {  // out of descriptors, mostly
        self->retry = self->host.loop.after(accept_retry, [raw = self.get()] { raw->accept(); });
        return;
      }
      auto client = std::make_shared<connection>(std::move(socket), self->host);
      self->connections.insert(client);
      client->start();
      self->accept();
    });
  }

  void on_closed(const std::shared_ptr<connection>& ended) {
    connections.erase(ended);
    accept();
    if (connections.empty() && on_empty) host.loop.post(std::exchange(on_empty, nullptr));
  }

  template <class Action>
  void for_each_connection(Action action) {
    const auto snapshot = connections;
    for (const auto& client : snapshot) action(*client);
  }
};

server::server(loop& runs_on, handler& answers, const limits& bounds)
    : state_{std::make_shared<state>(runs_on, answers, bounds)} {}

server::~server() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  state_->on_empty = nullptr;
  state_->for_each_connection([](connection& client) { client.close_now(); });
}

void server::open(const std::string& host, std::uint16_t port) {
  const auto endpoint = resolve(state_->host.loop.context(), host, port);
  auto& acceptor = state_->acceptor;
  boost::system::error_code failure;
  acceptor.open(endpoint.protocol(), failure);
  if (!failure) acceptor.set_option(tcp::acceptor::reuse_address{true}, failure);
  if (!failure) acceptor.bind(endpoint, failure);
  if (!failure) acceptor.listen(4096, failure);
  if (failure) {
    throw listen_error{"cannot listen on " + host + ":" + std::to_string(port) + ": " + failure.message()};
  }
}

std::uint16_t server::port() const { return state_->acceptor.local_endpoint().port(); }

void server::start() { state_->accept(); }

void server::begin_drain() { state_->host.is_closing = true; }

void server::close(std::chrono::milliseconds deadline, std::function<void()> done) {
  begin_drain();
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  state_->on_empty = std::move(done);
  state_->for_each_connection([](connection& client) { client.close_when_answered(); });
  if (state_->connections.empty() && state_->on_empty) {
    return state_->host.loop.post(std::exchange(state_->on_empty, nullptr));
  }
  state_->deadline = state_->host.loop.after(
      deadline, [raw = state_.get()] { raw->for_each_connection([](connection& client) { client.close_now(); }); });
}

std::size_t server::num_connections() const { return state_->connections.size(); }

}  // namespace sluice::http
