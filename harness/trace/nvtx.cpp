// NVTX ranges in the domain `assay`. NVTX is header-only: without a tool its domain is null and calls do nothing.
#include "harness/trace/nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <unordered_map>

namespace assay::trace::nvtx {
namespace {

nvtxDomainHandle_t make_domain() {
  nvtxInitialize(nullptr);
  const auto domain = nvtxDomainCreateA("assay");
  if (!domain) return nullptr;
  for (auto category : {Category::run, Category::case_, Category::sample, Category::phase, Category::layer,
                        Category::communication, Category::data})
    nvtxDomainNameCategoryA(domain, static_cast<std::uint32_t>(category), std::string(name_of(category)).c_str());
  return domain;
}

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = make_domain();
  return handle;
}

struct Hash : std::hash<std::string_view> {
  using is_transparent = void;
};

// Registers each distinct name once; by content, since case names are in buffers that are reused.
nvtxStringHandle_t registered(const char* name) {
  thread_local std::unordered_map<std::string, nvtxStringHandle_t, Hash, std::equal_to<>> handles;
  const std::string_view key(name);
  if (const auto found = handles.find(key); found != handles.end()) return found->second;
  const auto handle = nvtxDomainRegisterStringA(domain(), name);
  handles.emplace(key, handle);
  return handle;
}

}  // namespace

bool attached() { return domain() != nullptr; }

void push(Category category, const char* name, std::int64_t payload) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = static_cast<std::uint32_t>(category);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = payload;
  // A tool may not support registered strings; then it gets the text with each range.
  if (const auto handle = registered(name)) {
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = handle;
  } else {
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
  }
  nvtxDomainRangePushEx(domain(), &attributes);
}

void pop() noexcept { nvtxDomainRangePop(domain()); }

}  // namespace assay::trace::nvtx
