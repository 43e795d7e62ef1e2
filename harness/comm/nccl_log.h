// What NCCL writes under NCCL_DEBUG=INFO, read for the few facts that a record keeps: which way the bytes go, which
// algorithm was taken, the last warning. NCCL has no call that tells them.
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
  // Takes text as it comes; an unfinished last line waits for its end. Lines of no known form are passed over.
  void add(std::string_view text);

  const std::set<NcclLink>& links() const { return links_; }
  // The different ways in alphabetical order, "NVLS" among them where multicast through the switch was set up.
  std::string transport() const;
  bool nvls() const { return nvls_; }
  // Of the last collective call that was logged with the subsystem TUNING: "RING/LL128". Empty: none.
  const std::string& choice() const { return choice_; }
  void forget_choice() { choice_.clear(); }
  // The last line that NCCL meant as a warning; empty when there was none.
  const std::string& warning() const { return warning_; }

 private:
  void take_line(std::string_view line);

  std::string rest_;
  std::set<NcclLink> links_;
  bool nvls_ = false;
  std::string choice_;
  std::string warning_;
};

// Links over a socket that should not be one, as remarks for a record, each with its mend: between ranks of one host
// (`host_of` by rank), or where there is InfiniBand.
std::vector<std::string> socket_remarks(const std::set<NcclLink>& links, const std::vector<std::uint64_t>& host_of,
                                        bool infiniband);

}  // namespace assay
