#include "harness/comm/nccl/communicator.h"

#include "harness/comm/nccl/check.h"
#include "harness/comm/nccl/log_capture.h"
#include "harness/comm/nccl/window.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/native.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace assay::nccl {

namespace {

// Throws Error for a type that this version of NCCL lacks (fp8 came with 2.24).
ncclDataType_t datatype_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return ncclFloat64;
    case DType::f32:
    case DType::tf32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::fp16: return ncclFloat16;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 1)
    case DType::fp8_e4m3: return ncclFloat8e4m3;
    case DType::fp8_e5m2: return ncclFloat8e5m2;
#else
    case DType::fp8_e4m3:
    case DType::fp8_e5m2: break;
#endif
    case DType::i64: return ncclInt64;
    case DType::i32: return ncclInt32;
    case DType::s8: return ncclInt8;
    case DType::u8: return ncclUint8;
  }
  throw Error(fmt::format("NCCL {}.{} has no {}", NCCL_MAJOR, NCCL_MINOR, name_of(dtype)));
}

ncclRedOp_t operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::min: return ncclMin;
  }
  throw Error("NCCL has no such reduction");
}

const char* at(const void* base, std::size_t bytes) { return static_cast<const char*>(base) + bytes; }
char* at(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }

// Containers may share a host name; with the boot id it is unique per host.
std::uint64_t this_host_hash() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::string text = name;
  if (const std::string boot = boot_id(); !boot.empty()) text += "\n" + boot;
  return std::hash<std::string>()(text);
}

bool has_infiniband() {
  std::error_code none;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", none);
  return !none && devices != std::filesystem::directory_iterator();
}

}  // namespace

NcclCommunicator::NcclCommunicator(ncclComm_t comm, std::unique_ptr<HostGroup> hosts, bool share_gpu, bool watched)
    : comm_(comm), hosts_(std::move(hosts)), share_gpu_(share_gpu) {
  ASSAY_NCCL(ncclCommUserRank(comm_, &rank_));
  ASSAY_NCCL(ncclCommCount(comm_, &size_));
  if (!watched) return;
  watch_.emplace(comm_, rank_);
  const std::uint64_t own = this_host_hash();
  host_of_.resize(static_cast<std::size_t>(size_));
  all_gather_host(&own, host_of_.data(), sizeof own);
}

NcclCommunicator::~NcclCommunicator() {
  watch_.reset();
  ncclCommDestroy(comm_);
  if (word_) cudaFree(word_);
}

std::string NcclCommunicator::implementation() const { return "NCCL " + version_text(); }

void NcclCommunicator::all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                                  Stream& stream) {
  const CountedCall call(calls_, "all_reduce");
  ASSAY_NCCL(ncclAllReduce(send, receive, count, datatype_of(dtype), operation_of(op), comm_, cuda::native(stream)));
}

void NcclCommunicator::all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) {
  const CountedCall call(calls_, "all_gather");
  const std::size_t own = count * size_of(dtype) * static_cast<std::size_t>(rank_);
  const void* from = send == receive ? at(receive, own) : send;
  ASSAY_NCCL(ncclAllGather(from, receive, count, datatype_of(dtype), comm_, cuda::native(stream)));
}

void NcclCommunicator::reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                                      Stream& stream) {
  const CountedCall call(calls_, "reduce_scatter");
  const std::size_t own = count * size_of(dtype) * static_cast<std::size_t>(rank_);
  void* to = send == receive ? at(receive, own) : receive;
  ASSAY_NCCL(ncclReduceScatter(send, to, count, datatype_of(dtype), operation_of(op), comm_, cuda::native(stream)));
}

void NcclCommunicator::broadcast(const void* send, void* receive, std::size_t count, DType dtype, int root,
                                 Stream& stream) {
  const CountedCall call(calls_, "broadcast");
  ASSAY_NCCL(ncclBroadcast(send, receive, count, datatype_of(dtype), root, comm_, cuda::native(stream)));
}

// As in nccl-tests: older versions of NCCL have no all-to-all.
void NcclCommunicator::all_to_all(const void* send, void* receive, std::size_t count, DType dtype, Stream& stream) {
  const std::size_t block = count * size_of(dtype);
  group(
      [&] {
        for (int r = 0; r < size_; ++r) {
          const std::size_t offset = block * static_cast<std::size_t>(r);
          this->send(at(send, offset), count, dtype, r, stream);
          this->receive(at(receive, offset), count, dtype, r, stream);
        }
      },
      stream);
}

void NcclCommunicator::send(const void* data, std::size_t count, DType dtype, int to, Stream& stream) {
  ASSAY_NCCL(ncclSend(data, count, datatype_of(dtype), to, comm_, cuda::native(stream)));
}

void NcclCommunicator::receive(void* data, std::size_t count, DType dtype, int from, Stream& stream) {
  ASSAY_NCCL(ncclRecv(data, count, datatype_of(dtype), from, comm_, cuda::native(stream)));
}

void NcclCommunicator::group(const std::function<void()>& body, Stream&) {
  const CountedCall call(calls_, "group");
  ASSAY_NCCL(ncclGroupStart());
  try {
    body();
  } catch (...) {
    ncclGroupEnd();  // otherwise this thread's later calls would wait for the group to end
    throw;
  }
  ASSAY_NCCL(ncclGroupEnd());
}

void NcclCommunicator::barrier() {
  const CountedCall call(calls_, "barrier");
  hosts_->barrier();
}

void NcclCommunicator::line_up(Stream& stream) {
  const CountedCall call(calls_, "line_up");
  const cudaStream_t queue = cuda::native(stream);
  if (!word_) {
    ASSAY_CUDA(cudaMalloc(&word_, sizeof(float)));
    ASSAY_CUDA(cudaMemsetAsync(word_, 0, sizeof(float), queue));
  }
  ASSAY_NCCL(ncclAllReduce(word_, word_, 1, ncclFloat, ncclMax, comm_, queue));
}

std::unique_ptr<Communicator> NcclCommunicator::split(int colour, int key) {
  ncclComm_t part = nullptr;
  ASSAY_NCCL(ncclCommSplit(comm_, colour, key, &part, nullptr));
  ASSAY_CHECK(part, "ncclCommSplit: no communicator of colour {}", colour);
  return std::make_unique<NcclCommunicator>(part, hosts_->split(colour, key), share_gpu_, false);
}

void NcclCommunicator::abort(const std::string& why) { abort_process(comm_, why); }

std::string NcclCommunicator::poll_error() {
  ncclResult_t state = ncclSuccess;
  ASSAY_NCCL(ncclCommGetAsyncError(comm_, &state));
  return state == ncclSuccess || state == ncclInProgress ? std::string() : describe(state, comm_);
}

std::vector<double> NcclCommunicator::values_of_all(double value) {
  std::vector<double> values(static_cast<std::size_t>(size_));
  all_gather_host(&value, values.data(), sizeof value);
  return values;
}

double NcclCommunicator::max_of(double value) {
  const std::vector<double> values = values_of_all(value);
  return *std::ranges::max_element(values);
}

double NcclCommunicator::broadcast_value(double value, int root) {
  ASSAY_CHECK(root >= 0 && root < size_, "broadcast_value: no rank {} in a world of {}", root, size_);
  return values_of_all(value)[static_cast<std::size_t>(root)];
}

void NcclCommunicator::all_gather_host(const void* send, void* receive, std::size_t bytes) {
  const CountedCall call(calls_, "all_gather_host");
  hosts_->all_gather(send, receive, bytes);
}

std::string NcclCommunicator::connections() {
  if (const std::string& why_not = log_capture().why_not(); !why_not.empty()) throw Error(why_not);
  return log_capture().read().transports();
}

std::vector<std::string> NcclCommunicator::remarks() {
  if (share_gpu_) return {};
  return socket_remarks(log_capture().read().links(), host_of_, has_infiniband());
}

std::string NcclCommunicator::choice_of(const std::function<void()>& call) {
  LogCapture& capture = log_capture();
  const bool logged = capture.log_choices(true);
  capture.forget_choice();
  call();
  if (!logged) return {};
  std::string choice = capture.read().choice();
  capture.log_choices(false);
  return choice;
}

std::string NcclCommunicator::why_not_registered(Registration how) {
  if (how == Registration::local) return {};
  if (!find_windows()) return fmt::format("NCCL {} has no symmetric memory, which came with 2.27", version_text());
  try {
    allocate_registered(1, how);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Buffer NcclCommunicator::allocate_registered(std::size_t bytes, Registration how) {
  if (how == Registration::symmetric) return allocate_window(comm_, bytes);
  void* data = nullptr;
  void* handle = nullptr;
  ASSAY_NCCL(ncclMemAlloc(&data, bytes));
  const ncclResult_t registered = ncclCommRegister(comm_, data, bytes, &handle);
  if (registered != ncclSuccess) {
    ncclMemFree(data);
    fail(registered, "ncclCommRegister", __FILE__, __LINE__);
  }
  return Buffer(data, bytes, [comm = comm_, handle](void* held, std::size_t) {
    ncclCommDeregister(comm, handle);
    ncclMemFree(held);
  });
}

}  // namespace assay::nccl

extern "C" assay::Communicator* assay_nccl_communicator(const assay::NcclWorld& world, const assay::ShareId& share) {
  auto hosts = assay::nccl::connect_hosts(world, share);
  const ncclComm_t comm = assay::nccl::init_communicator(world, *hosts);
  return std::make_unique<assay::nccl::NcclCommunicator>(comm, std::move(hosts), world.share_gpu, true).release();
}
