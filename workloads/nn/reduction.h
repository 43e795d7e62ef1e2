// How a training step's collectives run while its backward pass does: by a thread of their own where streams run
// inline, else on a stream of their own.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <functional>
#include <memory>

namespace assay::nn {

// Jobs run one after another in the order of submission, which is the same on every rank.
class Reduction {
 public:
  using Job = std::function<void(Communicator&, Stream&)>;

  virtual ~Reduction() = default;
  // The job begins once what was enqueued on `compute` so far is done.
  virtual void submit(Job job, Stream& compute) = 0;
  // What is enqueued on `compute` from here on begins once every job has ended. Throws what a job threw.
  virtual void join(Stream& compute) = 0;

  // Seconds spent in jobs so far by a thread of their own: of its CPU, and by the clock; 0 where there is none.
  virtual double cpu_seconds() const { return 0; }
  virtual double wall_seconds() const { return 0; }
};

// Both must outlive it.
std::unique_ptr<Reduction> make_reduction(Communicator& comm, Device& device);

}  // namespace assay::nn
