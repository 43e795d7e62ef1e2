#include "harness/process/poll_source.h"

#include "harness/core/clock.h"

namespace assay {

bool read_until(PollSource& source, double seconds, const std::function<bool()>& done) {
  constexpr int step_ms = 20;
  const Clock::time_point start = Clock::now();
  for (;;) {
    source.read();
    if (done()) return true;
    if (seconds_since(start) >= seconds) return false;
    std::vector<pollfd> fds;
    source.add_fds(fds);
    ::poll(fds.data(), fds.size(), step_ms);
  }
}

}  // namespace assay
