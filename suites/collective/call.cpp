#include "suites/collective/call.h"

#include "harness/core/error.h"

namespace assay::collective {

void make_call(Op op, Communicator& comm, const void* send, void* receive, const Layout& layout, DType dtype,
               Stream& stream) {
  switch (op) {
    case Op::all_reduce: return comm.all_reduce(send, receive, layout.count, dtype, ReduceOp::sum, stream);
    case Op::all_gather: return comm.all_gather(send, receive, layout.count, dtype, stream);
    case Op::reduce_scatter: return comm.reduce_scatter(send, receive, layout.count, dtype, ReduceOp::sum, stream);
    case Op::all_to_all: return comm.all_to_all(send, receive, layout.count, dtype, stream);
    case Op::broadcast: return comm.broadcast(send, receive, layout.count, dtype, root_rank, stream);
    case Op::send_recv:
    case Op::all_to_all_v: break;
  }
  throw Error("collective: no single call makes this op");
}

}  // namespace assay::collective
