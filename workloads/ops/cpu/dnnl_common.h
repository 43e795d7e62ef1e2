// Shared by all ops on oneDNN: engine, types, attributes, and a primitive with its arguments bound.
#pragma once

#include "harness/core/dtype.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace assay::ops {

dnnl::engine& dnnl_engine();

// Throws Error for a type that oneDNN lacks.
dnnl::memory::data_type dnnl_type(DType dtype);

// The caller provides scratch memory; f32 means f32, whatever ONEDNN_DEFAULT_FPMATH_MODE is. `add`: adds to the
// destination.
dnnl::primitive_attr dnnl_attributes(bool add = false);

// A matrix with contiguous rows.
dnnl::memory::desc dnnl_matrix(std::int64_t rows, std::int64_t columns, DType type);

// "oneDNN 3.2.0".
std::string dnnl_version_text();

// A primitive and its memories. run() takes their addresses in binding order. Building may allocate; running does not.
class DnnlCall {
 public:
  using Binding = std::pair<int, dnnl::memory::desc>;  // DNNL_ARG_..., layout

  // `scratch` is bound last.
  DnnlCall(dnnl::primitive primitive, std::string implementation, std::vector<Binding> bindings,
           const dnnl::memory::desc& scratch);

  const std::string& implementation() const { return implementation_; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  // oneDNN takes no const pointers; sources are only read.
  void run(std::initializer_list<const void*> addresses);

 private:
  dnnl::primitive primitive_;
  std::string implementation_;
  std::size_t scratch_bytes_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// The call of the primitive that `pd` describes.
template <typename Primitive>
DnnlCall dnnl_call(const typename Primitive::primitive_desc& pd, std::vector<DnnlCall::Binding> bindings) {
  return DnnlCall(Primitive(pd), pd.impl_info_str(), std::move(bindings), pd.scratchpad_desc());
}

// A copy from one layout and type to another, with its own scratch memory; `add` adds to the destination.
class DnnlReorder {
 public:
  DnnlReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool add = false);
  void run(const void* from, void* to) { call_.run({from, to, scratch_.data()}); }

 private:
  DnnlCall call_;
  std::vector<char> scratch_;
};

}  // namespace assay::ops
