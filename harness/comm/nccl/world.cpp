#include "harness/comm/nccl/world.h"

#include "harness/comm/nccl/check.h"
#include "harness/comm/nccl/log_capture.h"
#include "harness/core/error.h"
#include "harness/device/cuda/check.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace assay::nccl {

namespace {

const char* code_of(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "ncclSuccess";
    case ncclUnhandledCudaError: return "ncclUnhandledCudaError";
    case ncclSystemError: return "ncclSystemError";
    case ncclInternalError: return "ncclInternalError";
    case ncclInvalidArgument: return "ncclInvalidArgument";
    case ncclInvalidUsage: return "ncclInvalidUsage";
    case ncclRemoteError: return "ncclRemoteError";
    case ncclInProgress: return "ncclInProgress";
    default: return "unknown";
  }
}

std::string to_hex(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

ncclUniqueId from_hex(const std::string& text) {
  ncclUniqueId id{};
  ASSAY_CHECK(text.size() == 2 * sizeof id.internal, "NCCL's id has {} characters, not {}", text.size(),
              2 * sizeof id.internal);
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    const auto digit = [&](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      ASSAY_CHECK(c >= 'a' && c <= 'f', "NCCL's id contains '{}'", c);
      return c - 'a' + 10;
    };
    id.internal[i] = static_cast<char>(16 * digit(text[2 * i]) + digit(text[2 * i + 1]));
  }
  return id;
}

// Shared by the thread that initialises and the one that waits for it and may time out first.
struct Initialisation {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  ncclResult_t result = ncclInProgress;
  ncclComm_t comm = nullptr;
};

void initialise(const std::shared_ptr<Initialisation>& state, ncclUniqueId id, NcclWorld world, int device) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  cudaSetDevice(device);
  const ncclResult_t result = ncclCommInitRankConfig(&comm, world.size, id, world.rank, &config);
  const std::lock_guard lock(state->mutex);
  state->done = true;
  state->result = result;
  state->comm = comm;
  state->finished.notify_all();
}

}  // namespace

std::string describe(ncclResult_t result, ncclComm_t comm) {
  const char* last = ncclGetLastError(comm);
  std::string text = fmt::format("{} ({})", ncclGetErrorString(result), code_of(result));
  const std::string warning = log_capture().read().warning();
  if (!warning.empty())
    text += ": " + warning;
  else if (last && *last)
    text += fmt::format(": {}", last);
  return text;
}

void fail(ncclResult_t result, const char* call, const char* file, int line) {
  std::string text = describe(result, nullptr);
  if (text.find("interface") != std::string::npos) {
    const char* named = std::getenv("NCCL_SOCKET_IFNAME");
    text += fmt::format("; NCCL_SOCKET_IFNAME {}", named ? fmt::format("is {}", named) : "is not set");
  }
  throw Error(fmt::format("{} failed: {} at {}:{}", call, text, file, line));
}

void prepare_environment(const NcclWorld& world) {
  if (!world.share_gpu) return;
  // NCCL rejects two ranks on one GPU of the same host, so each rank claims its own host.
  setenv("NCCL_HOSTID", fmt::format("assay-rank-{}", world.rank).c_str(), 1);
  // Such "hosts" can only communicate by network, and every machine has loopback.
  setenv("NCCL_NET", "Socket", 0);
  setenv("NCCL_IB_DISABLE", "1", 0);
  if (!world.several_hosts) setenv("NCCL_SOCKET_IFNAME", "=lo", 0);
  setenv("NCCL_MNNVL_ENABLE", "0", 0);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);  // NCCL's own switch since 2.30
}

std::string version_text() {
  int version = 0;
  ASSAY_NCCL(ncclGetVersion(&version));
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<HostGroup> connect_hosts(const NcclWorld& world, const ShareId& share) {
  prepare_environment(world);
  log_capture();
  std::string own;
  if (world.rank == 0) {
    ncclUniqueId id{};
    ASSAY_NCCL(ncclGetUniqueId(&id));
    own = to_hex(id);
  }
  return std::make_unique<HostGroup>(world.rank, world.size, world.several_hosts, share, world.timeout_seconds, own);
}

ncclComm_t init_communicator(const NcclWorld& world, const HostGroup& hosts) {
  const ncclUniqueId id = from_hex(hosts.note());
  int device = 0;
  ASSAY_CUDA(cudaGetDevice(&device));
  const auto state = std::make_shared<Initialisation>();
  std::thread([=] { initialise(state, id, world, device); }).detach();
  std::unique_lock lock(state->mutex);
  const auto timeout = std::chrono::duration<double>(world.timeout_seconds);
  if (!state->finished.wait_for(lock, timeout, [&] { return state->done; }))
    throw Error(
        fmt::format("ncclCommInitRankConfig: rank {} timed out after {:.3g} s waiting for all of {} ranks to arrive",
                    world.rank, world.timeout_seconds, world.size));
  if (state->result != ncclSuccess) fail(state->result, "ncclCommInitRankConfig", __FILE__, __LINE__);
  return state->comm;
}

void abort_process(ncclComm_t comm, const std::string& why) {
  std::fprintf(stderr, "abort: %s\n", why.c_str());
  // Frees the GPU from kernels that wait for other ranks; it may itself block on a thread that is inside NCCL.
  std::thread([comm] { ncclCommAbort(comm); }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::_Exit(static_cast<int>(ExitCode::broken));
}

Watch::Watch(ncclComm_t comm, int rank) : comm_(comm), rank_(rank), thread_([this] { loop(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::loop() {
  constexpr auto interval = std::chrono::milliseconds(250);
  // Gives the supervisor time to notice, and name, the rank that failed first.
  constexpr auto grace = std::chrono::seconds(2);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [this] { return ending_; })) {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess || state == ncclSuccess || state == ncclInProgress)
      continue;
    if (wake_.wait_for(lock, grace, [this] { return ending_; })) return;
    abort_process(comm_, fmt::format("NCCL on rank {}: {}", rank_, describe(state, comm_)));
  }
}

}  // namespace assay::nccl
