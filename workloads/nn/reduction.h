// Overlaps a training step's collectives with its backward pass: on a separate thread if streams run inline, else on a
// separate stream.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace assay::nn {

// Jobs run one at a time in the order of submission, which must be the same on every rank.
class Reduction {
 public:
  using Job = std::function<void(Communicator&, Stream&)>;

  virtual ~Reduction() = default;
  // The job starts once the work enqueued on `compute` so far is done.
  virtual void submit(Job job, Stream& compute) = 0;
  // Work enqueued on `compute` from here on starts once every job has ended. Rethrows the exception of a job.
  virtual void join(Stream& compute) = 0;
  // The same for the jobs submitted before mark() returned this mark, since the last join.
  using Mark = std::size_t;
  virtual Mark mark() = 0;
  virtual void after(Mark mark, Stream& compute) = 0;

  // CPU time and wall time that the separate thread spent in jobs so far; 0 if there is none.
  virtual double cpu_seconds() const { return 0; }
  virtual double wall_seconds() const { return 0; }
};

// Both must outlive it.
std::unique_ptr<Reduction> make_reduction(Communicator& comm, Device& device);

}  // namespace assay::nn
