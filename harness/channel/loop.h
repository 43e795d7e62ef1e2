// The loop of everything that supervises: one wait for the channel and all other descriptors, then their handlers.
#pragma once

#include "harness/channel/channel.h"
#include "harness/process/poll_source.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace assay {

// Called by a ChannelLoop. What handling a message throws is logged and costs that message, except for a RunDirError,
// which ends the run.
class ChannelHandler {
 public:
  virtual ~ChannelHandler() = default;
  virtual void on_hello(int peer, const message::Hello& hello) = 0;
  virtual void on_message(int peer, const Message& message) = 0;
  virtual void on_closed(int peer) = 0;
  virtual void on_refused(const message::Refused& refusal) = 0;
  // Nothing came from the peer for heartbeat_limit() seconds.
  virtual void on_silent(int peer, double seconds) = 0;
  // A line for stderr.
  virtual void note(const std::string& line) = 0;
  // The peer's name in these lines of the log: "rank 3".
  virtual std::string name_of_peer(int peer) const = 0;
};

class ChannelLoop : public PollSource {
 public:
  // `handler` must outlive this. Throws Error when the server cannot listen.
  ChannelLoop(std::unique_ptr<ChannelServer> server, ChannelHandler& handler);

  ChannelServer& server() { return *server_; }
  const ChannelServer& server() const { return *server_; }
  // One round: waits up to `timeout_ms`, handles what came over the channel, lets the other sources read, then reports
  // silent peers. False when nothing came over the channel.
  bool round(int timeout_ms, std::initializer_list<PollSource*> others);

  void add_fds(std::vector<pollfd>& fds) const override { server_->add_fds(fds); }
  void read() override { round(0, {}); }

 private:
  void handle(const ChannelServer::Event& event);

  std::unique_ptr<ChannelServer> server_;
  ChannelHandler& handler_;
  double limit_seconds_;
};

}  // namespace assay
