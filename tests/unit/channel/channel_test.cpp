// The channel among strangers: whatever they send costs a log line, and real workers continue.
#include "harness/channel/channel.h"
#include "harness/core/rng.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>

namespace assay {
namespace {

using testing::HasSubstr;
using Kind = ChannelServer::Event::Kind;

class Client {
 public:
  Client() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {}
  explicit Client(const ChannelServer& server) : Client() { connect_to(server); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void connect_to(const ChannelServer& server) const {
    const std::string& address = server.address();
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  }
  ~Client() { close(fd_); }
  // The server may stop reading: the rest is lost.
  void send_text(const std::string& text) const {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t got = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (got <= 0) return;
      sent += static_cast<std::size_t>(got);
    }
  }
  std::string receive() const {
    char block[4096];
    const ssize_t got = recv(fd_, block, sizeof block, 0);
    return got > 0 ? std::string(block, static_cast<std::size_t>(got)) : std::string();
  }

 private:
  int fd_;
};

class Channel : public testing::Test {
 protected:
  void SetUp() override { server_.expect(2); }

  std::string hello(int rank, const std::string& version = channel_version()) const {
    const message::Hello hello{
        .token = server_.token(), .rank = rank, .size = 2, .host = "here", .pid = 1, .version = version};
    return encode(hello) + "\n";
  }
  // Gathers events and log lines until `enough`.
  void gather(const std::function<bool()>& enough) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::vector<pollfd> others;
    while (!enough() && std::chrono::steady_clock::now() < until) {
      for (auto& event : server_.wait(20, others)) events_.push_back(std::move(event));
      for (auto& line : server_.drain_log()) log_.push_back(std::move(line));
    }
    EXPECT_TRUE(enough());
  }
  void expect_worker_continues(const Client& worker) {
    const std::size_t before = events_.size();
    worker.send_text("{\"type\":\"heartbeat\"}\n");
    gather([&] { return events_.size() > before; });
    EXPECT_EQ(events_.back().kind, Kind::message);
  }

  ChannelServer server_;
  std::vector<ChannelServer::Event> events_;
  std::vector<std::string> log_;
};

TEST_F(Channel, ListensOnLoopbackOnlyAndTokensAreFresh) {
  EXPECT_EQ(server_.address().rfind("127.0.0.1:", 0), 0u);
  const std::string first = server_.token();
  EXPECT_EQ(first.size(), 32u);
  server_.expect(2);
  EXPECT_NE(server_.token(), first);
}

TEST_F(Channel, AWorkerIsHeard) {
  const Client worker(server_);
  worker.send_text(hello(1));
  worker.send_text("{\"type\":\"span\",\"name\":\"set");
  gather([&] { return events_.size() == 1; });
  EXPECT_EQ(events_[0].kind, Kind::hello);
  EXPECT_EQ(events_[0].rank, 1);
  worker.send_text("up\"}\n");
  gather([&] { return events_.size() == 2; });
  EXPECT_EQ(std::get<message::Phase>(events_[1].message).name, "setup");
  EXPECT_TRUE(server_.send(1, message::End{}));
  EXPECT_FALSE(server_.send(0, message::End{}));
  EXPECT_THAT(worker.receive(), HasSubstr("end"));
}

TEST_F(Channel, StrangersCostALogLine) {
  const Client worker(server_);
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const std::vector<std::pair<std::string, std::string>> strangers = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "bad line: not JSON"},
      {"{}\n", "no hello"},
      {"[1,2]\n", "not an object"},
      {"{\"type\":\"hello\",\"token\":\"" + std::string(32, '0') + "\"}\n", "wrong token"},
      {"{\"type\":\"hello\",\"token\":7}\n", "token: not a string"},
      {std::string(1 << 20, 'x'), "a line beyond the limit"},
      {std::string(4000, '[') + "\n", "nested deeper"},
      {std::string("\0\xff\xfe\n", 4), "bad line"},
      {hello(0), "a second rank 0"},
      {hello(5), "rank 5 in a world of 2"},
  };
  for (const auto& [text, word] : strangers) {
    const Client stranger(server_);
    stranger.send_text(text);
    const std::size_t before = log_.size();
    gather([&] { return log_.size() > before; });
    EXPECT_THAT(log_.back(), HasSubstr(word)) << text.substr(0, 60);
  }
  expect_worker_continues(worker);
}

TEST_F(Channel, AnotherVersionIsRefusedWithBoth) {
  const Client worker(server_);
  worker.send_text(hello(0, "9.9.9"));
  gather([&] { return !events_.empty(); });
  EXPECT_EQ(events_[0].kind, Kind::refused);
  const std::string word = worker.receive();
  EXPECT_THAT(word, HasSubstr("9.9.9"));
  EXPECT_THAT(word, HasSubstr(channel_version()));
}

TEST_F(Channel, ABadLineCostsOnlyThatLineAndAClosedConnectionIsAnEvent) {
  {
    const Client worker(server_);
    worker.send_text(hello(0) + "garbage\n{\"type\":\"heartbeat\"}\n");
    gather([&] { return events_.size() == 2; });
    EXPECT_THAT(log_.back(), HasSubstr("rank 0: bad line"));
  }
  gather([&] { return events_.size() == 3; });
  EXPECT_EQ(events_[2].kind, Kind::closed);
}

TEST_F(Channel, ALongLineMayFollowAHelloAtOnce) {
  const Client worker(server_);
  worker.send_text(hello(0) + "{\"type\":\"note\",\"text\":\"" + std::string(20000, 'x') + "\"}\n");
  gather([&] { return events_.size() == 2; });
  EXPECT_EQ(std::get<message::Note>(events_[1].message).text.size(), 20000u);
}

TEST_F(Channel, AHelloSentAgainIsALogLineAndNoRefusal) {
  const Client first(server_);
  first.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  for (const bool complete : {false, true}) {
    const Client second(server_);
    if (complete) {
      const std::size_t before = events_.size();
      second.send_text(hello(1));
      gather([&] { return events_.size() > before; });
    }
    const Client again(server_);
    again.send_text(hello(0));
    const std::size_t said = log_.size(), events = events_.size();
    gather([&] { return log_.size() > said; });
    EXPECT_THAT(log_.back(), HasSubstr("a second rank 0"));
    EXPECT_THAT(again.receive(), HasSubstr("a second rank 0"));
    EXPECT_EQ(events_.size(), events);
    expect_worker_continues(first);
  }
}

TEST_F(Channel, AFloodOfSilentConnectionsKeepsNoWorkerOut) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  std::vector<std::unique_ptr<Client>> strangers;
  for (int i = 0; i < 400; ++i) strangers.push_back(std::make_unique<Client>(server_));
  const Client worker(server_);
  worker.send_text(hello(1));
  gather([&] { return !events_.empty(); });
  EXPECT_EQ(events_[0].kind, Kind::hello);
  // One descriptor per stranger is this test's own end.
  EXPECT_LE(descriptors() - before - static_cast<std::ptrdiff_t>(strangers.size()), 140);
  expect_worker_continues(worker);
}

TEST_F(Channel, StrangersCostFewLogLinesWhateverTheyDo) {
  const Client worker(server_);
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  for (int i = 0; i < 300; ++i) {
    const Client stranger(server_);
    stranger.send_text("x\n");
    std::vector<pollfd> others;
    for (int round = 0; round < 2; ++round) (void)server_.wait(1, others);
    for (auto& line : server_.drain_log()) log_.push_back(std::move(line));
  }
  for (int i = 0; i < 300; ++i) worker.send_text("x\n");
  expect_worker_continues(worker);
  EXPECT_FALSE(log_.empty());
  EXPECT_LE(log_.size(), 21u);
}

// When descriptors run out, a connection in the queue must not stay there and keep the server awake.
TEST_F(Channel, WithoutDescriptorsItDoesNotSpin) {
  const Client worker(server_);
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const Client strangers[3];
  rlimit whole{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &whole), 0);
  rlimit used = whole;
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  used.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &used), 0);
  for (const Client& stranger : strangers) stranger.connect_to(server_);
  int waits = 0;
  std::vector<pollfd> others;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  for (; std::chrono::steady_clock::now() < until; ++waits) (void)server_.wait(200, others);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &whole), 0);
  EXPECT_LT(waits, 100);
  gather([&] { return !log_.empty(); });
  EXPECT_THAT(log_[0], HasSubstr("could not be accepted"));
  for (const Client& stranger : strangers) EXPECT_EQ(stranger.receive(), "");
  expect_worker_continues(worker);
}

// Once every rank is connected, strangers are polled at a bounded rate.
TEST_F(Channel, TalkingStrangersDoNotKeepItAwake) {
  const Client first(server_), second(server_);
  first.send_text(hello(0));
  second.send_text(hello(1));
  gather([&] { return events_.size() == 2; });
  const Client stranger(server_);
  int waits = 0;
  std::vector<pollfd> others;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  for (; std::chrono::steady_clock::now() < until; ++waits) {
    stranger.send_text("x");
    const Client silent(server_);
    EXPECT_TRUE(server_.wait(50, others).empty());
  }
  EXPECT_LT(waits, 100);
  expect_worker_continues(first);
}

TEST_F(Channel, RandomBytesNeverCrash) {
  const Client worker(server_);
  worker.send_text(hello(0));
  gather([&] { return events_.size() == 1; });
  const Rng rng(5, "channel");
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    std::string text = hello(1);
    for (std::uint64_t i = 0; i < 4; ++i)
      text[rng.below(trial * 8 + 2 * i, text.size() - 1)] = static_cast<char>(rng.below(trial * 8 + 2 * i + 1, 256));
    const Client stranger(server_);
    stranger.send_text(text + "\n");
    std::vector<pollfd> others;
    for (int i = 0; i < 3; ++i) (void)server_.wait(1, others);
  }
  (void)server_.drain_log();
  expect_worker_continues(worker);
}

}  // namespace
}  // namespace assay
