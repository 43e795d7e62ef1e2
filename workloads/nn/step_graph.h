// Work that is enqueued anew the first time, then captured and replayed; and the times of its parts on the device.
#pragma once

#include "harness/device/device.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::nn {

enum class Part : std::uint8_t { forward, backward, exposed_communication, optimizer, done };
inline constexpr std::size_t timed_parts = 4;  // `done` takes no time

// Marks in a stream where one part ends and the next begins.
class PartClock {
 public:
  explicit PartClock(Device& device) : device_(device) {}

  // Before work is enqueued.
  void restart() { used_ = 0; }
  // What is enqueued from here on belongs to `part`.
  void begin(Part part, Stream& stream);
  // Seconds by part, after the work is done.
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

  // `body` enqueues the same work on `stream` at every call, and nothing that is not part of it. The first run enqueues
  // it (kernels are loaded, libraries made ready); the second captures it; where the device refuses, every run enqueues
  // it.
  void run(Stream& stream, const Body& body);
  const PartClock& clock() const { return clock_; }

  bool captured() const { return graph_ != nullptr; }
  // Why it is not captured; empty while nobody has tried.
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
