// The communicator over MPI. Calls complete before they return: CPU streams run inline.
#include "harness/comm/mpi/communicator.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

namespace assay::mpi {

namespace {

constexpr int tag = 1;

int as_int(std::size_t count) { return static_cast<int>(count); }

// Calls fn(offset in elements, elements) for pieces that fit MPI's int counts; once for an empty buffer.
template <typename F>
void in_pieces(std::size_t count, std::size_t max_count, const F& fn) {
  std::size_t done = 0;
  do {
    const std::size_t piece = std::min(count - done, max_count);
    fn(done, as_int(piece));
    done += piece;
  } while (done < count);
}

const char* at(const void* base, std::size_t bytes) { return static_cast<const char*>(base) + bytes; }
char* at(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, std::shared_ptr<const World> world, std::size_t max_count)
    : comm_(comm), world_(std::move(world)), max_count_(max_count) {
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

MpiCommunicator::~MpiCommunicator() {
  int finalized = 0;
  if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) MPI_Comm_free(&comm_);
}

std::string MpiCommunicator::implementation() const { return world_->implementation(); }

void MpiCommunicator::all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                                 Stream&) {
  const CountedCall call(calls_, "all_reduce");
  const MPI_Datatype type = datatype_of(dtype);
  const MPI_Op reduction = world_->reductions.find(op, dtype);
  const bool in_place = send == receive;
  in_pieces(count, max_count_, [&](std::size_t offset, int piece) {
    const std::size_t bytes = offset * size_of(dtype);
    check(MPI_Allreduce(in_place ? MPI_IN_PLACE : at(send, bytes), at(receive, bytes), piece, type, reduction, comm_),
          "MPI_Allreduce");
  });
}

void MpiCommunicator::all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream&) {
  const CountedCall call(calls_, "all_gather");
  const std::size_t own = count * size_of(dtype) * static_cast<std::size_t>(rank_);
  const void* from = send == receive || send == at(receive, own) ? MPI_IN_PLACE : send;
  const MPI_Datatype type = datatype_of(dtype);
  if (fits(count)) {
    check(MPI_Allgather(from, as_int(count), type, receive, as_int(count), type, comm_), "MPI_Allgather");
  } else {
    const LargeType large(type, count, max_count_);
    check(MPI_Allgather(from, 1, large.get(), receive, 1, large.get(), comm_), "MPI_Allgather");
  }
}

void MpiCommunicator::reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                                     Stream&) {
  const CountedCall call(calls_, "reduce_scatter");
  const MPI_Datatype type = datatype_of(dtype);
  const MPI_Op reduction = world_->reductions.find(op, dtype);
  const std::size_t block = count * size_of(dtype);
  const std::size_t own = block * static_cast<std::size_t>(rank_);
  const bool in_place = send == receive || at(send, own) == receive;
  if (!fits(count))
    return reduce_scatter_large(send, in_place ? at(const_cast<void*>(send), own) : receive, count, dtype, op);
  if (!in_place) {
    check(MPI_Reduce_scatter_block(send, receive, as_int(count), type, reduction, comm_), "MPI_Reduce_scatter_block");
    return;
  }
  // MPI puts the result at the start of the buffer; our contract, like NCCL's, at the rank's own part.
  void* buffer = const_cast<void*>(send);
  check(MPI_Reduce_scatter_block(MPI_IN_PLACE, buffer, as_int(count), type, reduction, comm_),
        "MPI_Reduce_scatter_block");
  if (own && block) std::memmove(at(buffer, own), buffer, block);
}

// Blocks too large for MPI's counts are reduced to one rank after another, in pieces.
void MpiCommunicator::reduce_scatter_large(const void* send, void* receive, std::size_t count, DType dtype,
                                           ReduceOp op) {
  const MPI_Datatype type = datatype_of(dtype);
  const MPI_Op reduction = world_->reductions.find(op, dtype);
  for (int root = 0; root < size_; ++root) {
    const void* block = at(send, count * size_of(dtype) * static_cast<std::size_t>(root));
    in_pieces(count, max_count_, [&](std::size_t offset, int piece) {
      const std::size_t bytes = offset * size_of(dtype);
      const void* from = at(block, bytes);
      void* to = at(receive, bytes);
      check(MPI_Reduce(rank_ == root && from == to ? MPI_IN_PLACE : from, to, piece, type, reduction, root, comm_),
            "MPI_Reduce");
    });
  }
}

// MPI broadcasts in place only.
void MpiCommunicator::broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root, Stream&) {
  const CountedCall call(calls_, "broadcast");
  if (rank() == root && send != receive) std::memcpy(receive, send, count * size_of(dtype));
  const MPI_Datatype type = datatype_of(dtype);
  in_pieces(count, max_count_, [&](std::size_t offset, int piece) {
    check(MPI_Bcast(at(receive, offset * size_of(dtype)), piece, type, root, comm_), "MPI_Bcast");
  });
}

void MpiCommunicator::all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream&) {
  const CountedCall call(calls_, "all_to_all");
  const void* from = send == receive ? MPI_IN_PLACE : send;
  const MPI_Datatype type = datatype_of(dtype);
  if (fits(count)) {
    check(MPI_Alltoall(from, as_int(count), type, receive, as_int(count), type, comm_), "MPI_Alltoall");
  } else {
    const LargeType large(type, count, max_count_);
    check(MPI_Alltoall(from, 1, large.get(), receive, 1, large.get(), comm_), "MPI_Alltoall");
  }
}

// Counts and offsets that do not fit MPI's integers are in units of what all blocks are multiples of.
void MpiCommunicator::all_to_all_v(const void* send, std::span<const std::size_t> sent, void* receive,
                                   std::span<const std::size_t> received, DType dtype, Stream&) {
  const CountedCall call(calls_, "all_to_all_v");
  struct Blocks {
    std::optional<LargeType> large;
    MPI_Datatype type;
    std::vector<int> counts, offsets;
    Blocks(std::span<const std::size_t> blocks, MPI_Datatype element, std::size_t max_count) : type(element) {
      const std::size_t total = std::accumulate(blocks.begin(), blocks.end(), std::size_t{0});
      std::size_t unit = total > max_count ? 0 : 1, offset = 0;
      if (unit == 0) {
        for (const std::size_t block : blocks) unit = std::gcd(unit, block);
        if (total / unit > max_count) throw Error(fmt::format("MPI_Alltoallv cannot address {} elements", total));
        type = large.emplace(element, unit, max_count).get();
      }
      for (const std::size_t block : blocks) {
        counts.push_back(as_int(block / unit)), offsets.push_back(as_int(offset));
        offset += block / unit;
      }
    }
  };
  const MPI_Datatype type = datatype_of(dtype);
  const Blocks from(sent, type, max_count_), to(received, type, max_count_);
  check(MPI_Alltoallv(send, from.counts.data(), from.offsets.data(), from.type, receive, to.counts.data(),
                      to.offsets.data(), to.type, comm_),
        "MPI_Alltoallv");
}

void MpiCommunicator::send(const void* data, std::size_t count, DType dtype, int to, Stream&) {
  const MPI_Datatype type = datatype_of(dtype);
  in_pieces(count, max_count_, [&](std::size_t offset, int piece) {
    const void* from = at(data, offset * size_of(dtype));
    if (in_group_)
      check(MPI_Isend(from, piece, type, to, tag, comm_, &requests_.emplace_back(MPI_REQUEST_NULL)), "MPI_Isend");
    else
      check(MPI_Send(from, piece, type, to, tag, comm_), "MPI_Send");
  });
}

void MpiCommunicator::receive(void* data, std::size_t count, DType dtype, int from, Stream&) {
  const MPI_Datatype type = datatype_of(dtype);
  in_pieces(count, max_count_, [&](std::size_t offset, int piece) {
    void* to = at(data, offset * size_of(dtype));
    if (in_group_)
      check(MPI_Irecv(to, piece, type, from, tag, comm_, &requests_.emplace_back(MPI_REQUEST_NULL)), "MPI_Irecv");
    else
      check(MPI_Recv(to, piece, type, from, tag, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
  });
}

void MpiCommunicator::group(const std::function<void()>& body, Stream&) {
  const CountedCall call(calls_, "group");
  ASSAY_CHECK(!in_group_, "groups do not nest");
  struct Open {
    explicit Open(MpiCommunicator& owner) : comm(owner) { comm.in_group_ = true; }
    ~Open() {
      comm.in_group_ = false;
      comm.requests_.clear();
    }
    MpiCommunicator& comm;
  } const open(*this);
  body();
  statuses_.resize(requests_.size());
  const int code = MPI_Waitall(as_int(requests_.size()), requests_.data(), statuses_.data());
  if (code == MPI_ERR_IN_STATUS)
    for (const MPI_Status& status : statuses_)
      if (status.MPI_ERROR != MPI_ERR_PENDING) check(status.MPI_ERROR, "MPI_Waitall");
  check(code, "MPI_Waitall");
}

void MpiCommunicator::barrier() {
  const CountedCall call(calls_, "barrier");
  check(MPI_Barrier(comm_), "MPI_Barrier");
}

std::unique_ptr<Communicator> MpiCommunicator::split(int colour, int key) {
  MPI_Comm part = MPI_COMM_NULL;
  check(MPI_Comm_split(comm_, colour, key, &part), "MPI_Comm_split");
  return std::make_unique<MpiCommunicator>(part, world_, max_count_);
}

void MpiCommunicator::abort(const std::string& why) {
  std::fprintf(stderr, "abort, rank %d: %s\n", rank_, why.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::broken));
  std::_Exit(static_cast<int>(ExitCode::broken));
}

}  // namespace assay::mpi
