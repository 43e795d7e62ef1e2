// The reference backend: the oracle against which every device is tested.
#include "tests/oracle/oracle.h"

#include "tests/oracle/reference_op.h"

namespace assay::ops {

namespace {

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend()
      : Backend([]<typename Op>(const typename Op::Desc& desc) { return reference::make_reference<Op>(desc); }) {}
  std::string name() const override { return "reference"; }
  std::string libraries() const override { return "none"; }
};

}  // namespace

std::shared_ptr<Backend> make_reference_backend() { return std::make_shared<ReferenceBackend>(); }

}  // namespace assay::ops
