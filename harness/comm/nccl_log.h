// Reads NCCL's log (NCCL_DEBUG=INFO) for what a record keeps: the connections, the chosen algorithm, the last warning.
// NCCL has no API for these.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// One connection between two ranks: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read".
struct NcclLink {
  int from = 0;
  int to = 0;
  std::string via;  // without channel and device numbers: "P2P/CUMEM/read", "SHM/direct/direct", "NET/IB/GDRDMA"
  auto operator<=>(const NcclLink&) const = default;
};

class NcclLog {
 public:
  // Appends text; an incomplete last line waits for its end. Unknown lines are ignored.
  void add(std::string_view text);

  const std::set<NcclLink>& links() const { return links_; }
  // The distinct transports in alphabetical order. A multicast group (NVLS) is none of them; choice() tells whether a
  // call used it.
  std::string transports() const;
  // The choice of the last collective call logged under the subsystem TUNING: "RING/LL128". Empty: none.
  const std::string& choice() const { return choice_; }
  void forget_choice() { choice_.clear(); }
  // NCCL's last warning; empty if there was none.
  const std::string& warning() const { return warning_; }

 private:
  void read_line(std::string_view line);

  std::string rest_;
  std::set<NcclLink> links_;
  std::string choice_;
  std::string warning_;
};

// An anonymous file that NCCL can open by its path, to log there.
struct NcclLogFile {
  int fd = -1;          // the caller's; -1: there is none
  std::string path;     // the value for NCCL_DEBUG_FILE
  std::string why_not;  // empty if there is one
};

// No file if the user has decided what NCCL logs, or where (NCCL_DEBUG, NCCL_DEBUG_FILE, NCCL_DEBUG_SUBSYS), or if it
// cannot be opened by its path below `descriptors`: NCCL would then log to the standard output.
NcclLogFile open_nccl_log(const std::string& descriptors = "/proc/self/fd");

// Warnings, with a fix each, about links that should not use a socket: between ranks of one host (`host_of` by rank),
// or if there is InfiniBand.
std::vector<std::string> socket_remarks(const std::set<NcclLink>& links, const std::vector<std::uint64_t>& host_of,
                                        bool infiniband);

}  // namespace assay
