// Enqueues work on its first run, then captures and replays it; and times its parts on the device.
#pragma once

#include "harness/device/device.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::nn {

enum class Part : std::uint8_t { forward, backward, exposed_communication, optimizer, exposed_gather, done };
inline constexpr std::size_t timed_parts = 5;  // `done` takes no time

// Marks on a stream where one part ends and the next begins.
class PartClock {
 public:
  explicit PartClock(Device& device) : device_(device) {}

  // Call before work is enqueued.
  void restart() { used_ = 0; }
  // Work enqueued from here on belongs to `part`.
  void begin(Part part, Stream& stream);
  // Seconds per part; call after the work is done.
  std::array<double, timed_parts> seconds() const;

 private:
  struct Mark {
    Part part;
    std::unique_ptr<Event> event;
  };
  Device& device_;
  std::vector<Mark> marks_;
  std::size_t used_ = 0;
};

class StepGraph {
 public:
  using Body = std::function<void(PartClock&)>;

  explicit StepGraph(Device& device) : device_(device), clock_(device) {}

  // `body` must enqueue the same work on `stream` at every call, and nothing else. The first run enqueues it (which
  // loads kernels and initialises libraries), the second captures it. If the device cannot capture it, every run
  // enqueues it.
  void run(Stream& stream, const Body& body);
  const PartClock& clock() const { return clock_; }

  bool captured() const { return graph_ != nullptr; }
  // Why it is not captured; empty before the first attempt.
  const std::string& why_not() const { return why_not_; }

 private:
  void enqueue(const Body& body);

  Device& device_;
  PartClock clock_;
  std::unique_ptr<Graph> graph_;
  std::string why_not_;
  bool warm_ = false;
};

}  // namespace assay::nn
