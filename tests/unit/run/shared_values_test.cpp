// NCCL's id goes from rank 0 through the supervisor to every rank, over a real channel.
#include "harness/run/shared_values.h"
#include "harness/core/error.h"
#include "harness/run/worker_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace assay {
namespace {

using testing::HasSubstr;

// A supervisor that only shares values.
class Supervisor {
 public:
  explicit Supervisor(int ranks) : ranks_(ranks) {
    server_.expect(ranks);
    setenv("ASSAY_SUPERVISOR", server_.address().c_str(), 1);
    setenv("ASSAY_TOKEN", server_.token().c_str(), 1);
    thread_ = std::thread([this] { loop(); });
  }
  ~Supervisor() {
    ending_ = true;
    thread_.join();
    unsetenv("ASSAY_SUPERVISOR");
    unsetenv("ASSAY_TOKEN");
  }

 private:
  void loop() {
    std::vector<pollfd> others;
    while (!ending_)
      for (const ChannelServer::Event& event : server_.wait(20, others)) {
        if (event.kind == ChannelServer::Event::Kind::hello) values_.send_all(event.rank, server_);
        if (const auto* share = std::get_if<message::Share>(&event.message))
          values_.share(event.rank, *share, server_, ranks_);
      }
  }

  int ranks_;
  ChannelServer server_;
  SharedValues values_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

TEST(SharedValues, ReachEveryRankEvenIfItConnectsLater) {
  const Supervisor supervisor(3);
  const std::string id(2048, 'f');
  {
    WorkerLink first({0, 3, 0, 3}), second({1, 3, 1, 3});
    EXPECT_THROW(second.shared("nccl_id", 0.05), Error) << "nobody has shared it";
    first.send(message::Share{"nccl_id", id});
    EXPECT_EQ(second.shared("nccl_id", 20), id);
    EXPECT_EQ(first.shared("nccl_id", 20), id);
    WorkerLink third({2, 3, 2, 3});
    EXPECT_EQ(third.shared("nccl_id", 20), id);
  }
}

TEST(SharedValues, OnlyRankZeroMayShareAndOnlyWithinBounds) {
  ChannelServer server;
  SharedValues values;
  EXPECT_THROW(values.share(1, {"nccl_id", "x"}, server, 2), Error);
  EXPECT_THROW(values.share(0, {"", "x"}, server, 2), Error);
  EXPECT_THROW(values.share(0, {"nccl_id", std::string(5000, 'x')}, server, 2), Error);
  EXPECT_THROW(decode(R"({"type":"share","name":7})"), std::exception);
  for (int i = 0; i < 16; ++i) values.share(0, {"n" + std::to_string(i), "x"}, server, 2);
  EXPECT_THROW(values.share(0, {"one more", "x"}, server, 2), Error);
  values.share(0, {"n3", "y"}, server, 2);
}

}  // namespace
}  // namespace assay
