// A thread that does one thing at a time for the one that owns it.
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

  // Returns at once. What was started before must have been finished.
  void start(std::function<void()> work);
  // Waits for it; throws what it threw.
  void finish();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // empty: nothing is under way
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace assay::transfer
