// The communicator over MPI, and the state that all of a process's communicators share.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/comm/mpi/types.h"

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

namespace assay::mpi {

// Created once MPI is initialised; lives as long as MPI.
class World {
 public:
  // Collective over the world.
  World();
  // Queried at the first call (MPI's tool interface takes 0.2 s to open). Not thread-safe.
  const std::string& implementation() const;

  const Reductions reductions;

 private:
  int nodes_;
  mutable std::string implementation_;
};

class MpiCommunicator final : public Communicator {
 public:
  // Owns `comm`. Calls with more than `max_count` elements are split into pieces.
  MpiCommunicator(MPI_Comm comm, std::shared_ptr<const World> world, std::size_t max_count);
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string implementation() const override;
  void all_reduce(const void*, void*, std::size_t, DType, ReduceOp, Stream&) override;
  void all_gather(const void*, void*, std::size_t, DType, Stream&) override;
  void reduce_scatter(const void*, void*, std::size_t, DType, ReduceOp, Stream&) override;
  void broadcast(const void*, void*, std::size_t, DType, int root, Stream&) override;
  void all_to_all(const void*, void*, std::size_t, DType, Stream&) override;
  void all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                    std::span<const std::size_t> received, DType, Stream&) override;
  void send(const void*, std::size_t, DType, int to, Stream&) override;
  void receive(void*, std::size_t, DType, int from, Stream&) override;
  void group(const std::function<void()>& body, Stream&) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int colour, int key) override;
  [[noreturn]] void abort(const std::string& why) override;

 private:
  // Whether an int can count all blocks of `count` elements, one per rank.
  bool fits(std::size_t count) const { return count <= max_count_ / static_cast<std::size_t>(size_); }
  void reduce_scatter_large(const void* send, void* receive, std::size_t count, DType, ReduceOp);

  MPI_Comm comm_;
  std::shared_ptr<const World> world_;
  std::size_t max_count_;
  int rank_ = 0;
  int size_ = 1;
  bool in_group_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace assay::mpi
