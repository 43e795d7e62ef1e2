#include "harness/comm/mpi/types.h"

#include "harness/comm/bf16_reduce.h"
#include "harness/core/error.h"

namespace assay::mpi {

namespace {

template <ReduceOp op>
void reduce_bf16(void* in, void* in_out, int* count, MPI_Datatype*) {
  assay::reduce_bf16(op, static_cast<const bf16*>(in), static_cast<bf16*>(in_out), static_cast<std::size_t>(*count));
}

}  // namespace

void fail(int code, const char* call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  throw Error(fmt::format("{}: {}", call, length ? std::string(text, text + length) : fmt::format("code {}", code)));
}

MPI_Datatype datatype_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return MPI_DOUBLE;
    case DType::f32:
    case DType::tf32: return MPI_FLOAT;
    case DType::bf16:
    case DType::fp16: return MPI_UINT16_T;
    case DType::i64: return MPI_INT64_T;
    case DType::i32: return MPI_INT32_T;
    case DType::s8: return MPI_INT8_T;
    case DType::u8: return MPI_UINT8_T;
    case DType::fp8_e4m3:
    case DType::fp8_e5m2: return MPI_BYTE;
  }
  throw Error("MPI has no such element type");
}

Reductions::Reductions() {
  check(MPI_Op_create(reduce_bf16<ReduceOp::sum>, 1, &bf16_[0]), "MPI_Op_create");
  check(MPI_Op_create(reduce_bf16<ReduceOp::max>, 1, &bf16_[1]), "MPI_Op_create");
  check(MPI_Op_create(reduce_bf16<ReduceOp::min>, 1, &bf16_[2]), "MPI_Op_create");
}

Reductions::~Reductions() {
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return;
  for (MPI_Op& op : bf16_) MPI_Op_free(&op);
}

void Reductions::refuse(DType dtype) { throw Error(fmt::format("MPI cannot reduce {}", name_of(dtype))); }

LargeType::LargeType(MPI_Datatype element, std::size_t count, std::size_t max_count) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  check(MPI_Type_get_extent(element, &lower, &extent), "MPI_Type_get_extent");
  const int block = static_cast<int>(max_count);
  const std::size_t blocks = count / max_count;
  const int rest = static_cast<int>(count % max_count);
  ASSAY_CHECK(blocks <= max_count, "{} elements are more than MPI can describe", count);

  MPI_Datatype parts[2];
  check(MPI_Type_vector(static_cast<int>(blocks), block, block, element, &parts[0]), "MPI_Type_vector");
  check(MPI_Type_contiguous(rest, element, &parts[1]), "MPI_Type_contiguous");
  const int lengths[2] = {1, 1};
  const MPI_Aint offsets[2] = {0, extent * static_cast<MPI_Aint>(blocks * max_count)};
  check(MPI_Type_create_struct(2, lengths, offsets, parts, &type_), "MPI_Type_create_struct");
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
  MPI_Type_free(&parts[0]);
  MPI_Type_free(&parts[1]);
}

LargeType::~LargeType() {
  if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
}

}  // namespace assay::mpi
