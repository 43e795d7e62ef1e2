// Why a case failed or broke, and why a run ended early: for programs as members, for people as text.
#pragma once

#include "harness/core/words.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Record;

enum class FailureKind {
  wrong_result,   // a check failed
  out_of_memory,  // of the host or the device
  timeout,        // a rank was not done in time, or sent no heartbeat
  crashed,        // a worker ended, by a signal or with an exit code
  exception,      // a worker said why it could not go on
  lost_host,      // the agent of a host, or its whole connection, is gone
  launch,         // the workers could not be started
  refused         // another build, or a request that this build does not take
};
constexpr auto words(FailureKind) {
  return std::to_array<std::string_view>(
      {"wrong_result", "out_of_memory", "timeout", "crashed", "exception", "lost_host", "launch", "refused"});
}

struct Failure {
  FailureKind kind = FailureKind::exception;
  std::optional<int> rank = {};         // absent: no single rank is to blame
  std::string host = {};                // empty: unknown
  std::vector<std::string> hosts = {};  // all of them, if several hosts are to blame

  static void members(auto& self, auto& io) {
    io.required("kind", self.kind), io("rank", self.rank), io.null_if_empty("host", self.host);
    io.sparse("hosts", self.hosts);
  }
};

// Why a run ended early, or went on without some of its hosts.
struct Ended {
  std::string reason;             // for people
  std::vector<std::string> lost;  // names of hosts

  static void members(auto& self, auto& io) { io("reason", self.reason), io("lost", self.lost); }
};

// The checks that failed and the first line of the reason if it tells more: "check wrong_elements: 3 wrong elements",
// "check sum", "killed by signal 9".
std::string failure_text(const Record& record);

// What records of builds before `failure` say in the words of reasons, checks and flags: sets the record's failure, the
// culprits of its checks and its slow rank. Does nothing if they are there.
void set_failure_from_text(Record& record);

}  // namespace assay
