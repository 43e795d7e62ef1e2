// What makes ops for a device. Backends: reference/ (in the binary), the modules cpu and cuda.
#pragma once

#include "workloads/ops/matmul.h"

#include <memory>
#include <string>

namespace assay::ops {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;  // reference, cpu, cuda
  // Libraries and versions, as recorded: "oneDNN 3.2.0; OpenBLAS 0.3.21 (SkylakeX)".
  virtual std::string libraries() const = 0;
  virtual Made<Matmul> make(const MatmulDesc&) = 0;
};

// The oracle: naive loops, accumulated in double (64-bit integers for int8).
std::shared_ptr<Backend> make_reference_backend();
// The backend of the device's kind, from its module; loaded once a process. Throws Error when the module is missing.
std::shared_ptr<Backend> backend_for(Device& device);

}  // namespace assay::ops
