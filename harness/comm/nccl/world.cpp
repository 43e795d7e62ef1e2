#include "harness/comm/nccl/world.h"

#include "harness/comm/nccl/check.h"
#include "harness/comm/nccl/log_capture.h"
#include "harness/core/error.h"
#include "harness/device/cuda/check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

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
  ASSAY_CHECK(text.size() == 2 * sizeof id.internal, "NCCL's id of {} characters, not {}", text.size(),
              2 * sizeof id.internal);
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    const auto digit = [&](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      ASSAY_CHECK(c >= 'a' && c <= 'f', "NCCL's id holds '{}'", c);
      return c - 'a' + 10;
    };
    id.internal[i] = static_cast<char>(16 * digit(text[2 * i]) + digit(text[2 * i + 1]));
  }
  return id;
}

// What the thread that meets and the one that waits for it share; the latter may be gone first.
struct Meeting {
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  ncclResult_t result = ncclInProgress;
  ncclComm_t comm = nullptr;
};

void meet_in_thread(const std::shared_ptr<Meeting>& meeting, ncclUniqueId id, NcclWorld world, int device) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  cudaSetDevice(device);
  const ncclResult_t result = ncclCommInitRankConfig(&comm, world.size, id, world.rank, &config);
  const std::lock_guard lock(meeting->mutex);
  meeting->done = true;
  meeting->result = result;
  meeting->comm = comm;
  meeting->over.notify_all();
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
  // Without it NCCL takes two ranks on one GPU for a mistake: each rank is given a host of its own.
  setenv("NCCL_HOSTID", fmt::format("assay-rank-{}", world.rank).c_str(), 1);
  // Between such "hosts" only a network is left, and loopback is the one that every machine has.
  setenv("NCCL_NET", "Socket", 0);
  setenv("NCCL_IB_DISABLE", "1", 0);
  if (!world.several_hosts) setenv("NCCL_SOCKET_IFNAME", "=lo", 0);
  setenv("NCCL_MNNVL_ENABLE", "0", 0);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);  // NCCL's own switch, from 2.30 on
}

std::string version_text() {
  int version = 0;
  ASSAY_NCCL(ncclGetVersion(&version));
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<HostGroup> meet_hosts(const NcclWorld& world, const ShareId& share) {
  prepare_environment(world);
  log_capture();
  std::string own;
  if (world.rank == 0) {
    ncclUniqueId id{};
    ASSAY_NCCL(ncclGetUniqueId(&id));
    own = to_hex(id);
  }
  return std::make_unique<HostGroup>(world.rank, world.size, world.several_hosts, share, world.patience_seconds, own);
}

ncclComm_t meet(const NcclWorld& world, const HostGroup& hosts) {
  const ncclUniqueId id = from_hex(hosts.note());
  int device = 0;
  ASSAY_CUDA(cudaGetDevice(&device));
  const auto meeting = std::make_shared<Meeting>();
  std::thread([=] { meet_in_thread(meeting, id, world, device); }).detach();
  std::unique_lock lock(meeting->mutex);
  const auto patience = std::chrono::duration<double>(world.patience_seconds);
  if (!meeting->over.wait_for(lock, patience, [&] { return meeting->done; }))
    throw Error(fmt::format("ncclCommInitRankConfig: rank {} waited {:.3g} s in vain for all of {} ranks to arrive",
                            world.rank, world.patience_seconds, world.size));
  if (meeting->result != ncclSuccess) fail(meeting->result, "ncclCommInitRankConfig", __FILE__, __LINE__);
  return meeting->comm;
}

void leave(ncclComm_t comm, const std::string& why) {
  std::fprintf(stderr, "abort: %s\n", why.c_str());
  // Frees the GPU of kernels that wait for others; it may itself wait for a thread that is inside NCCL.
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
  // The rank that fell is the one to be named: its supervisor hears of it first.
  constexpr auto grace = std::chrono::seconds(2);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [this] { return ending_; })) {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess || state == ncclSuccess || state == ncclInProgress)
      continue;
    if (wake_.wait_for(lock, grace, [this] { return ending_; })) return;
    leave(comm_, fmt::format("NCCL on rank {}: {}", rank_, describe(state, comm_)));
  }
}

}  // namespace assay::nccl
