#include "tests/emulation/fibre.h"

#include "harness/core/error.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>

namespace assay::emulation {

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;
constexpr std::size_t page = 4096;

// makecontext passes integers only.
void enter(unsigned high, unsigned low) {
  const std::uintptr_t bits = static_cast<std::uintptr_t>(high) << 32 | low;
  struct Start {
    void (*work)(void*);
    void* context;
  };
  const Start start = *reinterpret_cast<const Start*>(bits);
  start.work(start.context);
}

}  // namespace

Fibre::Fibre(void (*work)(void*), void* context) : started_(false), work_(work), context_(context) {
  void* mapped = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSAY_CHECK(mapped != MAP_FAILED, "no memory for the stack of an emulated thread");
  stack_ = mapped;
  mprotect(stack_, page, PROT_NONE);
}

Fibre::~Fibre() {
  if (stack_) munmap(stack_, stack_bytes);
}

void switch_fibre(Fibre& from, Fibre& to) {
  if (_setjmp(from.at_) != 0) return;
  if (to.started_) _longjmp(to.at_, 1);
  to.started_ = true;
  struct Start {
    void (*work)(void*);
    void* context;
  } start{to.work_, to.context_};
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = to.stack_;
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  const auto bits = reinterpret_cast<std::uintptr_t>(&start);
  makecontext(&context, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(bits >> 32),
              static_cast<unsigned>(bits & 0xffffffffu));
  setcontext(&context);
}

}  // namespace assay::emulation
