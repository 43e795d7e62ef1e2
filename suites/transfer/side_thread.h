// A thread that runs one piece of work at a time.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace assay::transfer {

class SideThread {
 public:
  SideThread();
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Returns at once. Earlier work must have been finished.
  void start(std::function<void()> work);
  // Waits for the work; rethrows its exception.
  void finish();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // empty: idle
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace assay::transfer
