// Counts what the processes that this one starts do, by the kernel's performance events.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace assay {

// Of the calling thread's children that it starts from then on, and their descendants, in user space.
class ChildCounter {
 public:
  enum class What { instructions, nanoseconds };  // of CPU time: any kernel counts it

  // Absent if the kernel or the machine has no such counter for this user; `why` then says so.
  static std::optional<ChildCounter> start(What what, std::string* why);
  ChildCounter(ChildCounter&& other) noexcept
      : all_(std::exchange(other.all_, -1)), own_(std::exchange(other.own_, -1)) {}
  ~ChildCounter();

  // What they have done so far. Absent if the counter was shared with others, so that it saw only a part.
  std::optional<double> count() const;

 private:
  ChildCounter(int all, int own) : all_(all), own_(own) {}

  int all_, own_;  // counters of this thread with its children, and without
};

}  // namespace assay
