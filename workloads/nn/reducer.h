// A thread for the collective calls of a training step, so that they overlap with the backward pass.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace assay::nn {

// Runs jobs one at a time in the order of submission. That order must be the same on every rank, so that collectives
// match. While jobs are pending no other thread may use the communicator.
class Reducer {
 public:
  using Job = std::function<void(Communicator&, Stream&)>;

  // Both must outlive the reducer.
  Reducer(Communicator& comm, Device& device);
  // Waits for the running job, and drops jobs that have not started.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  void submit(Job job);
  // Returns once every job has ended; rethrows the first exception of a job, after which jobs are dropped.
  void wait();
  // The same for the first `jobs` submitted.
  void wait_for(std::size_t jobs);
  std::size_t submitted() const { return submitted_; }

  // CPU time and wall time spent in jobs so far. Call while no job is pending.
  double cpu_seconds() const { return cpu_seconds_; }
  double wall_seconds() const { return wall_seconds_; }

 private:
  void loop();

  Communicator& comm_;
  std::unique_ptr<Stream> stream_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Job> jobs_;
  std::size_t submitted_ = 0, ended_ = 0, awaited_ = 0;
  bool busy_ = false;
  bool ending_ = false;
  std::exception_ptr failure_;
  double cpu_seconds_ = 0;
  double wall_seconds_ = 0;
  std::thread thread_;
};

}  // namespace assay::nn
