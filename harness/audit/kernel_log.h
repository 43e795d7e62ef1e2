// The kernel's log of past days: where it is kept, how its lines are dated, which of them are evidence of a problem.
#pragma once

#include "harness/audit/audit.h"
#include "harness/audit/log_lines.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::audit {

// The first word of a message if it ends with a colon, "NVRM:"; else empty.
std::string speaker_of(std::string_view message);
// What a message is evidence of: each line by itself that begins as the first, with those that do not; or else the
// whole. `pci` is the address that a line means which lacks one of its own; may be empty.
std::vector<KernelEvent> parse_kernel_message(std::string_view message, const std::string& pci = {});

// The messages of one source, counted by kind, device, code, problem, and whether they are of the last boot in it.
class EventCounts {
 public:
  // Messages dated before `from` do not count. `boot`: when the machine's last boot was, if that is known.
  EventCounts(double from, double now, std::optional<double> boot) : from_(from), now_(now), boot_(boot) {}

  // What follows in the log, or, in one that has the newest first, what was before.
  void add(std::vector<LogLine> messages);
  // As often as in the one of both that has more of it. Both are at their ends.
  void join(EventCounts other);
  // The events: by their last message, those of unknown time at the end.
  std::vector<KernelEvent> finish();

  std::int64_t left_out() const { return left_out_; }                     // messages of kinds beyond those kept
  std::optional<double> latest_future() const { return latest_future_; }  // a date more than an hour after now
  std::optional<double> first() const { return first_; }
  // Leaves out what is dated from then on (Unix seconds).
  void only_before(double until) { until_ = until; }
  std::optional<double> last() const { return last_; }
  int boots() const { return boots_; }

 private:
  // Whether a message is of the last boot: so, or dated before it, which a clock that was wrong may have done (as one
  // too old to count), or not.
  enum class Of { last_boot, by_its_date, too_old, earlier_boot };
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, Of>;
  struct Named {
    std::optional<double> moment;
    std::string address;
  };

  bool begins_boot(const LogLine& line, bool backwards);
  void add(const LogLine& message, bool earlier);
  void keep(Key key, KernelEvent event);
  void settle();
  std::string address_before(const LogLine& message);

  double from_, now_, until_ = std::numeric_limits<double>::infinity();
  std::optional<double> boot_;
  std::map<Key, KernelEvent> events_;
  std::map<std::string, Named> named_;  // by speaker
  std::int64_t left_out_ = 0;
  std::optional<double> latest_future_, first_, last_, uptime_;
  std::optional<bool> newest_first_;  // how the log is ordered, once it is known
  // Used for a log with the newest line first. in_earlier_boot_: the lines that follow belong to an earlier boot;
  // after_first_: the last line was the first of its boot.
  bool in_earlier_boot_ = false, after_first_ = false;
  bool had_first_ = false;  // the first message of the boot that the last line is of was seen
  int boots_ = 1;
  std::int64_t of_this_boot_ = 0;  // messages since the last change of the boot
  bool began_ = false;             // the beginning of the last boot in the log was seen
  bool reaches_ = false;           // a message of that boot is dated after the machine's last boot
};

struct KernelLog {
  std::vector<KernelEvent> events;      // by their last message; those of unknown time at the end
  std::vector<std::string> sources;     // what could be read: "/dev/kmsg", "journal", "/var/log/kern.log"
  std::vector<std::string> empty;       // what could be read and has no message of the kernel
  std::vector<std::string> cut;         // what was left out of them, and how much
  std::optional<double> latest_future;  // the latest date that lies more than an hour after now
};
// Messages that several sources hold are counted once: as often as the source that holds most of them.
KernelLog read_kernel_log(const Root& root, double now_unix_seconds, double days, std::optional<double> boot);

}  // namespace assay::audit
