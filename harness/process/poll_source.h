// What a loop polls and reads, besides whatever else it does.
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

namespace assay {

// Descriptors to poll, and what reads from them.
class PollSource {
 public:
  virtual ~PollSource() = default;
  virtual void add_fds(std::vector<pollfd>& fds) const = 0;
  // Reads whatever has come, without waiting.
  virtual void read() = 0;
};

// Reads `source`, at least once, until `done` or for `seconds`. The last value of `done`.
bool read_until(PollSource& source, double seconds, const std::function<bool()>& done);

}  // namespace assay
