// An NVTX tool for tests: NVTX loads it by NVTX_INJECTION64_PATH, and it logs to $ASSAY_NVTX_LOG.PID, one line per call
// with fields separated by tabs: category DOMAIN ID NAME · push DOMAIN THREAD CATEGORY PAYLOAD REGISTERED NAME · pop
// DOMAIN THREAD.
#include <nvtx3/nvToolsExt.h>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>

namespace {

struct Log {
  std::FILE* file = nullptr;
  std::mutex mutex;
  std::deque<std::string> domains, strings;  // handles are addresses, so elements must not move
};

Log& log_of_process() {
  static Log& log = *new Log;
  return log;
}

const char* name_of(nvtxDomainHandle_t domain) {
  return domain ? reinterpret_cast<const std::string*>(domain)->c_str() : "(default)";
}

nvtxDomainHandle_t NVTX_API domain_create(const char* name) {
  auto& log = log_of_process();
  std::lock_guard lock(log.mutex);
  return reinterpret_cast<nvtxDomainHandle_t>(&log.domains.emplace_back(name));
}

nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
  auto& log = log_of_process();
  std::lock_guard lock(log.mutex);
  return reinterpret_cast<nvtxStringHandle_t>(&log.strings.emplace_back(text));
}

void NVTX_API name_category(nvtxDomainHandle_t domain, std::uint32_t id, const char* name) {
  auto& log = log_of_process();
  std::lock_guard lock(log.mutex);
  std::fprintf(log.file, "category\t%s\t%u\t%s\n", name_of(domain), id, name);
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  auto& log = log_of_process();
  std::lock_guard lock(log.mutex);
  const bool registered = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  const char* const name =
      registered ? reinterpret_cast<const std::string*>(event->message.registered)->c_str() : event->message.ascii;
  const auto payload = event->payloadType == NVTX_PAYLOAD_TYPE_INT64 ? std::to_string(event->payload.llValue) : "none";
  std::fprintf(log.file, "push\t%s\t%d\t%u\t%s\t%d\t%s\n", name_of(domain), static_cast<int>(gettid()), event->category,
               payload.c_str(), registered, name);
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t domain) {
  auto& log = log_of_process();
  std::lock_guard lock(log.mutex);
  std::fprintf(log.file, "pop\t%s\t%d\n", name_of(domain), static_cast<int>(gettid()));
  return 0;
}

template <typename F>
void set(NvtxFunctionTable table, unsigned size, unsigned id, F function) {
  if (id < size && table[id]) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const char* const path = std::getenv("ASSAY_NVTX_LOG");
  if (!path) return 0;
  auto& log = log_of_process();
  log.file = std::fopen((std::string(path) + "." + std::to_string(getpid())).c_str(), "w");
  if (!log.file) return 0;
  std::setvbuf(log.file, nullptr, _IOLBF, 0);  // keeps the log of a worker that is killed
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  set(table, size, NVTX_CBID_CORE2_DomainCreateA, domain_create);
  set(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  set(table, size, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
