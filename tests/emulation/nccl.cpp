// A stand-in of NCCL between processes of one host: the calls that the communicator makes, with NCCL's rules (one GPU
// per rank unless hosts differ, matching sizes, groups), errors and log. Sums in rank order, in f32 for the small
// types.
#include "harness/core/dtype.h"
#include "tests/emulation/nccl_comm.h"
#include "tests/emulation/runtime.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>
#include <net/if.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using assay::emulation::SharedWorld;
using assay::emulation::WorldFault;

namespace assay::emulation {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// --- the log
// -----------------------------------------------------------------------------------------------------------

class Log {
 public:
  void reopen() {
    const std::lock_guard lock(mutex_);
    if (file_) std::fclose(file_);
    file_ = nullptr;
    open_ = false;
  }
  void line(const char* level, const char* subsystem, int device, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (!open_) {
      level_ = environment("NCCL_DEBUG");
      subsystems_ = environment("NCCL_DEBUG_SUBSYS");
      std::string path = environment("NCCL_DEBUG_FILE");
      if (const std::size_t at = path.find("%p"); at != std::string::npos)  // each process has its own file
        path.replace(at, 2, std::to_string(::getpid()));
      if (!level_.empty() && !path.empty()) file_ = std::fopen(path.c_str(), "w");
      open_ = true;
    }
    const bool info = std::string_view(level) == "INFO";
    if (level_.empty() || (info && level_ != "INFO")) return;
    if (info && !subsystems_.empty() && subsystems_.find(subsystem) == std::string::npos) return;
    std::FILE* out = file_ ? file_ : stdout;
    fmt::print(out, "emulated:{}:{} [{}] NCCL {} {}\n", ::getpid(), ::getpid(), device, level, text);
    std::fflush(out);
  }

 private:
  std::mutex mutex_;
  std::FILE* file_ = nullptr;
  bool open_ = false;
  std::string level_, subsystems_;
};

Log& log() {
  static Log& one = *new Log;
  return one;
}
thread_local std::string last_error;

}  // namespace

ncclResult_t warn(ncclResult_t result, int device, const std::string& text) {
  last_error = text;
  log().line("WARN", "", device, text);
  return result;
}

namespace {

// --- types and reductions
// ----------------------------------------------------------------------------------------------

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

// Reduces one rank's elements into the result so far; `first` starts a new result.
using Fold = void (*)(ncclRedOp_t op, const char* in, char* in_out, std::size_t elements, bool first);

template <typename T, typename Wide>
void fold(ncclRedOp_t op, const char* in, char* in_out, std::size_t elements, bool first) {
  for (std::size_t i = 0; i < elements; ++i) {
    T next{};
    std::memcpy(&next, in + i * sizeof(T), sizeof next);
    const Wide value = static_cast<Wide>(next);
    Wide result = value;
    if (!first) {
      std::memcpy(&result, in_out + i * sizeof(Wide), sizeof result);
      result = op == ncclMax   ? std::max(result, value)
               : op == ncclMin ? std::min(result, value)
                               : static_cast<Wide>(result + value);
    }
    std::memcpy(in_out + i * sizeof(Wide), &result, sizeof result);
  }
}

using Narrow = void (*)(const char* wide, char* out, std::size_t elements);
template <typename T, typename Wide>
void narrow(const char* wide, char* out, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    Wide value{};
    std::memcpy(&value, wide + i * sizeof(Wide), sizeof value);
    const T result = static_cast<T>(value);
    std::memcpy(out + i * sizeof(T), &result, sizeof result);
  }
}

struct Reduction {
  Fold fold = nullptr;
  Narrow narrow = nullptr;
};
template <typename T, typename Wide>
Reduction reduction() {
  return {&fold<T, Wide>, &narrow<T, Wide>};
}
Reduction reduction_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8: return reduction<std::int8_t, std::int64_t>();
    case ncclUint8: return reduction<std::uint8_t, std::int64_t>();
    case ncclInt32: return reduction<std::int32_t, std::int64_t>();
    case ncclInt64: return reduction<std::int64_t, std::int64_t>();
    case ncclFloat64: return reduction<double, double>();
    case ncclFloat32: return reduction<float, float>();
    case ncclBfloat16: return reduction<bf16, float>();
    case ncclFloat16: return reduction<fp16, float>();
    case ncclFloat8e4m3: return reduction<fp8_e4m3, float>();
    case ncclFloat8e5m2: return reduction<fp8_e5m2, float>();
    default: return {};
  }
}

// --- calls
// -------------------------------------------------------------------------------------------------------------

enum class Call { all_reduce, all_gather, reduce_scatter, broadcast, send, receive };
constexpr std::array<const char*, 6> call_names{"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Send", "Recv"};

struct Op {
  Call call{};
  ncclComm_t comm = nullptr;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t op{};
  int root = 0;  // or peer
  cudaStream_t stream = nullptr;
};

std::uint64_t stamp_of(const Op& one) {
  return (static_cast<std::uint64_t>(one.call) + 1) << 56 ^ static_cast<std::uint64_t>(one.type) << 48 ^
         static_cast<std::uint64_t>(one.op) << 44 ^ static_cast<std::uint64_t>(one.root) << 36 ^ one.count;
}

// Runs a collective, on the thread that runs the stream's work.
bool run_collective(const Op& one) {
  SharedWorld& world = *one.comm->world;
  const std::size_t element = size_of(one.type), block = one.count * element;
  const auto rank = static_cast<std::size_t>(world.rank());
  char* out = static_cast<char*>(one.receive);
  const std::uint64_t stamp = stamp_of(one);
  if (one.call == Call::all_gather)
    return world.exchange(stamp, one.send, block,
                          [&](int from, std::size_t offset, const char* piece, std::size_t length) {
                            std::memcpy(out + static_cast<std::size_t>(from) * block + offset, piece, length);
                          });
  if (one.call == Call::broadcast)
    return world.exchange(stamp, one.send, world.rank() == one.root ? block : 0,
                          [&](int, std::size_t offset, const char* piece, std::size_t length) {
                            std::memcpy(out + offset, piece, length);
                          });
  const Reduction how = reduction_of(one.type);
  const bool scatters = one.call == Call::reduce_scatter;
  const std::size_t whole = scatters ? block * static_cast<std::size_t>(world.size()) : block;
  std::vector<char> wide;
  return world.exchange(
      stamp, one.send, whole, [&](int from, std::size_t offset, const char* piece, std::size_t length) {
        wide.resize(length / element * 8);
        how.fold(one.op, piece, wide.data(), length / element, from == 0);
        if (from + 1 < world.size()) return;
        // A scattered sum leaves each rank only its own block.
        const std::size_t begin = scatters ? std::max(offset, rank * block) : offset;
        const std::size_t end = scatters ? std::min(offset + length, (rank + 1) * block) : offset + length;
        if (begin >= end) return;
        std::vector<char> narrow(length);
        how.narrow(wide.data(), narrow.data(), length / element);
        std::memcpy(out + begin - (scatters ? rank * block : 0), narrow.data() + (begin - offset), end - begin);
      });
}

}  // namespace

ncclResult_t result_of(ncclComm_t comm) {
  switch (comm->world->fault()) {
    case WorldFault::none: return ncclSuccess;
    case WorldFault::gone: return ncclRemoteError;
    case WorldFault::mismatch: return ncclInvalidUsage;
    case WorldFault::aborted: return ncclRemoteError;
  }
  return ncclInternalError;
}

namespace {

// A group's messages progress together, after its collectives.
void run_group(const std::vector<Op>& ops) {
  std::vector<std::pair<ncclComm_t, std::vector<SharedWorld::Transfer>>> messages;
  for (const Op& one : ops) {
    if (one.call != Call::send && one.call != Call::receive) {
      run_collective(one);
      continue;
    }
    auto found =
        std::find_if(messages.begin(), messages.end(), [&](const auto& pair) { return pair.first == one.comm; });
    if (found == messages.end()) found = messages.insert(messages.end(), {one.comm, {}});
    const bool sends = one.call == Call::send;
    char* data = sends ? static_cast<char*>(const_cast<void*>(one.send)) : static_cast<char*>(one.receive);
    found->second.push_back({sends, one.root, data, one.count * size_of(one.type)});
  }
  for (auto& [comm, transfers] : messages) comm->world->transfer(std::move(transfers));
}

thread_local int group_depth = 0;
thread_local std::vector<Op> group_ops;

// NCCL has kernels for symmetric memory for the calls before the broadcast.
std::string choice_text(const Op& one) {
  const std::string name = call_names[static_cast<std::size_t>(one.call)];
  const std::size_t bytes = one.count * size_of(one.type);
  if (one.call < Call::broadcast && in_window(one.comm, one.send) && in_window(one.comm, one.receive))
    return fmt::format("{} [Symmetric]: {} Bytes -> Kernel {}_emulated nchannels 1 nthreads 512", name, bytes, name);
  return fmt::format("{}: {} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..0}}", name, bytes);
}

ncclResult_t submit(std::vector<Op> ops) {
  std::erase_if(ops, [](const Op& one) { return one.count == 0; });
  if (ops.empty()) return ncclSuccess;
  for (const Op& one : ops)
    if (one.comm->world->rank() == 0 && one.call < Call::send)
      log().line("INFO", "TUNING", one.comm->device, choice_text(one));
  const ncclComm_t comm = ops.front().comm;
  comm->memory.connect();
  const cudaStream_t stream = ops.front().stream;
  if (enqueue(stream, [ops = std::move(ops), held = comm->calls] { run_group(ops); }) != cudaSuccess)
    return ncclUnhandledCudaError;
  return result_of(comm);
}

ncclResult_t make(const Op& one) {
  if (!one.comm) return warn(ncclInvalidArgument, 0, "comm argument is NULL");
  if (size_of(one.type) == 0) return warn(ncclInvalidArgument, one.comm->device, "invalid type");
  if ((one.call == Call::all_reduce || one.call == Call::reduce_scatter) &&
      (!reduction_of(one.type).fold || one.op == ncclProd || one.op == ncclAvg))
    return warn(ncclInvalidArgument, one.comm->device, "this reduction is not emulated");
  if (one.root < 0 || one.root >= one.comm->world->size())
    return warn(ncclInvalidArgument, one.comm->device,
                fmt::format("{} : invalid root {} (root should be in the 0..{} range)",
                            call_names[static_cast<std::size_t>(one.call)], one.root, one.comm->world->size()));
  if (const ncclResult_t broken = result_of(one.comm); broken != ncclSuccess) return broken;
  if (group_depth > 0) {
    group_ops.push_back(one);
    return ncclSuccess;
  }
  return submit({one});
}

// --- making communicators
// ----------------------------------------------------------------------------------------------

struct Peer {
  int device = 0;
  char host[120] = {};
};

// NCCL's log lines about a ring, and its rejection of two ranks on one GPU.
ncclResult_t introduce(ncclComm_t comm) {
  SharedWorld& world = *comm->world;
  Peer own;
  own.device = comm->device;
  std::snprintf(own.host, sizeof own.host, "%s", comm->host.c_str());
  std::vector<Peer> peers(static_cast<std::size_t>(world.size()));
  const bool met = world.exchange(1, &own, sizeof own, [&](int from, std::size_t, const char* piece, std::size_t) {
    std::memcpy(&peers[static_cast<std::size_t>(from)], piece, sizeof(Peer));
  });
  if (!met) return ncclRemoteError;
  bool one_host = true;
  for (int a = 0; a < world.size(); ++a)
    for (int b = 0; b < a; ++b) {
      const Peer &p = peers[static_cast<std::size_t>(a)], &q = peers[static_cast<std::size_t>(b)];
      const bool same_host = std::string_view(p.host) == q.host;
      one_host = one_host && same_host;
      if (same_host && p.device == q.device)
        return warn(ncclInvalidUsage, comm->device,
                    fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}", b, a, p.device));
    }
  if (world.size() == 1) return ncclSuccess;
  const bool shared_memory = environment("NCCL_SHM_DISABLE") != "1" || environment("NCCL_P2P_DISABLE") != "1";
  const int next = (world.rank() + 1) % world.size();
  const Peer& peer = peers[static_cast<std::size_t>(next)];
  const bool near = std::string_view(peer.host) == own.host && shared_memory;
  log().line("INFO", "INIT", comm->device,
             fmt::format("Channel 00/0 : {}[{}] -> {}[{}] {}", world.rank(), own.device, next, peer.device,
                         near ? "via SHM/emulated" : "[send] via NET/Socket/0"));
  if (one_host && shared_memory && environment("NCCL_NVLS_ENABLE") != "0")
    log().line("INFO", "INIT", comm->device, "NVLS comm 0x1 headRank 0 nHeads 1 buffSize 0 nvlsPerRankSize 0");
  return ncclSuccess;
}

std::string host_id() {
  const std::string named = environment("NCCL_HOSTID");
  if (!named.empty()) return named;
  char name[100] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

ncclResult_t make_comm(ncclComm_t* made, const std::string& name, int rank, int size) {
  auto comm = std::make_unique<ncclComm>();
  comm->device = current_device();
  comm->host = host_id();
  comm->world = SharedWorld::join(name, rank, size, -1);
  if (!comm->world) return warn(ncclSystemError, comm->device, "a peer exited before all had joined");
  if (const ncclResult_t result = introduce(comm.get()); result != ncclSuccess) return result;
  *made = comm.release();
  return ncclSuccess;
}

}  // namespace

}  // namespace assay::emulation

using namespace assay::emulation;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = nccl_version();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }
void ncclResetDebugInit() { log().reopen(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::string interface = environment("NCCL_SOCKET_IFNAME");
  while (!interface.empty() && interface.front() == '=') interface.erase(0, 1);
  if (!interface.empty() && interface.front() != '^' && ::if_nametoindex(interface.c_str()) == 0)
    return warn(ncclInvalidUsage, 0, "Bootstrap : no socket interface found");
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return ncclSystemError;
  std::string name = "/assay-nccl-";
  for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
  *id = {};
  std::copy(name.begin(), name.end(), id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  if (rank < 0 || rank >= size)
    return warn(ncclInvalidArgument, 0, fmt::format("Invalid rank requested : {}/{}", rank, size));
  return make_comm(comm, id.internal, rank, size);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t* part, ncclConfig_t*) {
  struct Member {
    int colour, key, rank;
    auto operator<=>(const Member&) const = default;
  };
  SharedWorld& world = *comm->world;
  const Member own{colour, key, world.rank()};
  std::vector<Member> members;
  if (!world.exchange(2, &own, sizeof own, [&](int, std::size_t, const char* piece, std::size_t) {
        Member member{};
        std::memcpy(&member, piece, sizeof member);
        if (member.colour == colour) members.push_back(member);
      }))
    return result_of(comm);
  const std::uint64_t number = world.next_part();
  *part = nullptr;
  if (colour == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::sort(members.begin(), members.end());
  const auto rank = static_cast<int>(std::find(members.begin(), members.end(), own) - members.begin());
  return make_comm(part, fmt::format("{}-{}-{}", world.name(), number, colour), rank, static_cast<int>(members.size()));
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  // NCCL waits until the last graph that captured a call is gone: forever, if its owner waits for this call.
  if (comm->calls.use_count() > 1) {
    fmt::print(stderr, "ncclCommDestroy: a graph still contains calls of this communicator\n");
    std::abort();
  }
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->world->fail_with(WorldFault::aborted);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = result_of(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->world->rank();
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int* size) {
  *size = comm->world->size();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return make({Call::all_reduce, comm, send, receive, count, type, op, 0, stream});
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return make({Call::all_gather, comm, send, receive, count, type, ncclSum, 0, stream});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return make({Call::reduce_scatter, comm, send, receive, count, type, op, 0, stream});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return make({Call::broadcast, comm, send, receive, count, type, ncclSum, root, stream});
}
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return make({Call::send, comm, data, nullptr, count, type, ncclSum, peer, stream});
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return make({Call::receive, comm, nullptr, data, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return warn(ncclInvalidUsage, 0, "ncclGroupEnd: not in a group call.");
  if (--group_depth > 0) return ncclSuccess;
  return submit(std::exchange(group_ops, {}));
}

}  // extern "C"
