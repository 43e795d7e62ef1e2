// The communicator over NCCL. Every call is enqueued on the given stream and may be captured in a graph, except
// barrier(), max_of(), broadcast_value() and all_gather_host(), which run on the hosts and neither use nor wait for the
// GPU.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/comm/nccl/world.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::nccl {

class NcclCommunicator final : public Communicator {
 public:
  // Owns `comm`. `share_gpu`: sockets are intended. `watched`: this is the world.
  NcclCommunicator(ncclComm_t comm, std::unique_ptr<HostGroup> hosts, bool share_gpu, bool watched);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string implementation() const override;

  void all_reduce(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) override;
  void all_gather(const void* send, void* receive, std::size_t count, DType, Stream&) override;
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType, ReduceOp, Stream&) override;
  void broadcast(const void* send, void* receive, std::size_t count, DType, int root, Stream&) override;
  void all_to_all(const void* send, void* receive, std::size_t count, DType, Stream&) override;
  void send(const void* data, std::size_t count, DType, int to, Stream&) override;
  void receive(void* data, std::size_t count, DType, int from, Stream&) override;
  void group(const std::function<void()>& body, Stream&) override;
  void barrier() override;
  void line_up(Stream& stream) override;
  std::unique_ptr<Communicator> split(int colour, int key) override;
  [[noreturn]] void abort(const std::string& why) override;
  std::string poll_error() override;

  double max_of(double value) override;
  double broadcast_value(double value, int root) override;
  void all_gather_host(const void* send, void* receive, std::size_t bytes) override;

  std::string connections() override;
  std::vector<std::string> remarks() override;
  std::string choice_of(const std::function<void()>& call) override;
  std::string why_not_registered(Registration how) override;
  Buffer allocate_registered(std::size_t bytes, Registration how) override;

 private:
  std::vector<double> values_of_all(double value);

  ncclComm_t comm_;
  std::unique_ptr<HostGroup> hosts_;
  bool share_gpu_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::uint64_t> host_of_;  // for each rank a hash of its host
  std::optional<Watch> watch_;
  void* word_ = nullptr;  // device memory of line_up()
};

}  // namespace assay::nccl
