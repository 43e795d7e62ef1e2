#include "harness/channel/loop.h"

#include "harness/channel/connect.h"
#include "harness/core/plain_text.h"
#include "harness/record/run_dir.h"

namespace assay {

ChannelLoop::ChannelLoop(std::unique_ptr<ChannelServer> server, ChannelHandler& handler)
    : server_(std::move(server)), handler_(handler), limit_seconds_(heartbeat_limit()) {}

bool ChannelLoop::round(int timeout_ms, std::initializer_list<PollSource*> others) {
  std::vector<pollfd> fds;
  for (const PollSource* other : others) other->add_fds(fds);
  const std::vector<ChannelServer::Event> events = server_->wait(timeout_ms, fds);
  for (const ChannelServer::Event& event : events) handle(event);
  for (const std::string& line : server_->drain_log()) handler_.note(line);
  for (PollSource* other : others) other->read();
  for (const int peer : server_->silent_peers(limit_seconds_)) handler_.on_silent(peer, limit_seconds_);
  return !events.empty();
}

void ChannelLoop::handle(const ChannelServer::Event& event) {
  using Kind = ChannelServer::Event::Kind;
  try {
    switch (event.kind) {
      case Kind::hello: return handler_.on_hello(event.rank, std::get<message::Hello>(event.message));
      case Kind::message: return handler_.on_message(event.rank, event.message);
      case Kind::closed: return handler_.on_closed(event.rank);
      case Kind::refused: return handler_.on_refused(std::get<message::Refused>(event.message));
    }
  } catch (const RunDirError&) {
    throw;
  } catch (const std::exception& error) {
    handler_.note(fmt::format("channel: {}: {}", handler_.name_of_peer(event.rank), reason_of(error)));
  }
}

}  // namespace assay
