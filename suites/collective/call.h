// One call of a collective, in the world or in a part of it.
#pragma once

#include "harness/comm/communicator.h"
#include "suites/collective/layout.h"

namespace assay::collective {

inline constexpr int root_rank = 0;  // of a broadcast

// Enqueues the call on buffers of that layout. Not for send_recv and all_to_all_v, which take more than a count.
void make_call(Op op, Communicator& comm, const void* send, void* receive, const Layout& layout, DType dtype,
               Stream& stream);

}  // namespace assay::collective
