// The other end of a ChannelServer's connection, for tests in which one thread holds both ends.
#pragma once

#include "harness/channel/tls.h"

#include <memory>
#include <string>

namespace assay {

class ChannelServer;

// A socket that sends bytes as they are.
class RawPeer {
 public:
  RawPeer();
  explicit RawPeer(const ChannelServer& server) : RawPeer() { connect_to(server); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer();
  void connect_to(const ChannelServer& server) const;
  int fd() const { return fd_; }
  // The server may stop reading: the rest is lost.
  void send_text(const std::string& text) const;
  // Waits for bytes; empty at the end of the connection.
  std::string receive() const;

 private:
  int fd_;
};

// A client that knows a token. Its handshake needs the server's answers: call proceed() until the server has them all.
class TlsPeer {
 public:
  TlsPeer(const ChannelServer& server, const std::string& token);
  const RawPeer& raw() const { return raw_; }
  // Sent as soon as the handshake is done.
  void send_text(const std::string& text);
  void proceed();
  // What has come so far.
  const std::string& received() const { return received_; }
  // Whether the server ended the connection or the handshake failed; then `why`.
  bool ended() const { return ended_; }
  const std::string& why() const { return tls_.why(); }

 private:
  RawPeer raw_;
  TlsConnection tls_;
  bool ready_ = false, ended_ = false;
  std::string unsent_, received_;
};

}  // namespace assay
