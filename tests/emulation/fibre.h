// A separate stack to run on: created by makecontext, switched to by _longjmp, which saves no signal mask and so makes
// no system call.
#pragma once

#include <setjmp.h>

#include <cstddef>

namespace assay::emulation {

class Fibre {
 public:
  Fibre() = default;  // the running stack
  // `work(context)` must never return: it switches away.
  Fibre(void (*work)(void*), void* context);
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;
  ~Fibre();

 private:
  friend void switch_fibre(Fibre& from, Fibre& to);

  jmp_buf at_{};
  bool started_ = true;
  void (*work_)(void*) = nullptr;
  void* context_ = nullptr;
  void* stack_ = nullptr;
};

// Continues in `to`; returns when something switches back to `from`.
void switch_fibre(Fibre& from, Fibre& to);

}  // namespace assay::emulation
