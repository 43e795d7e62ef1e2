// Shared by all ops on oneDNN.
#include "workloads/ops/cpu/dnnl_common.h"

#include "harness/core/error.h"

namespace assay::ops {

dnnl::engine& dnnl_engine() {
  static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

dnnl::memory::data_type dnnl_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::f32: return Type::f32;
    case DType::bf16: return Type::bf16;
    case DType::u8: return Type::u8;
    case DType::s8: return Type::s8;
    case DType::i32: return Type::s32;
    default: throw Error(fmt::format("oneDNN has no {}", name_of(dtype)));
  }
}

dnnl::primitive_attr dnnl_attributes(bool add) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum();
    attr.set_post_ops(sum);
  }
  return attr;
}

dnnl::memory::desc dnnl_matrix(std::int64_t rows, std::int64_t columns, DType type) {
  return dnnl::memory::desc({rows, columns}, dnnl_type(type), dnnl::memory::dims{columns, 1});
}

std::string dnnl_version_text() {
  const dnnl::version_t* v = dnnl::version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

DnnlCall::DnnlCall(dnnl::primitive primitive, std::string implementation, std::vector<Binding> bindings,
                   const dnnl::memory::desc& scratch)
    : primitive_(std::move(primitive)),
      implementation_(std::move(implementation)),
      scratch_bytes_(scratch.get_size()),
      stream_(dnnl_engine()) {
  bindings.emplace_back(DNNL_ARG_SCRATCHPAD, scratch);
  memories_.reserve(bindings.size());
  for (const auto& [argument, desc] : bindings) {
    memories_.emplace_back(desc, dnnl_engine(), nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  }
}

void DnnlCall::run(std::initializer_list<const void*> addresses) {
  ASSAY_CHECK(addresses.size() == memories_.size(), "{} takes {} arguments", implementation_, memories_.size());
  std::size_t i = 0;
  for (const void* address : addresses) memories_[i++].set_data_handle(const_cast<void*>(address));
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  ASSAY_CHECK(status == dnnl_success, "oneDNN {} failed with status {}", implementation_, int{status});
}

namespace {

DnnlCall reorder_call(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool add) {
  const dnnl::reorder::primitive_desc pd(dnnl_engine(), from, dnnl_engine(), to, dnnl_attributes(add));
  return dnnl_call<dnnl::reorder>(pd, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace

DnnlReorder::DnnlReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool add)
    : call_(reorder_call(from, to, add)), scratch_(call_.scratch_bytes()) {}

}  // namespace assay::ops
