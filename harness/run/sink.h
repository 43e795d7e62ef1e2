// Where a run's results go: a run directory, or over the channel to the host that has it.
#pragma once

#include "harness/channel/messages.h"
#include "harness/record/record.h"
#include "harness/trace/trace.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A RunDirError from any of these ends the run, after its workers have been ended.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // Told to the workers; empty if it is not on this host.
  virtual std::filesystem::path run_dir() const { return {}; }
  virtual void record(Record record) = 0;
  // Appends to, or replaces, a file below the run directory.
  virtual void file(const std::string& name, std::string_view text, bool replace) = 0;
  // Under --each-host: a host's environment and findings, before its first record.
  virtual void machine(const std::string& /*host*/, const message::Machine& /*machine*/) {}
  // Under --trace, once the cases are done.
  virtual void timelines(const std::vector<trace::RankTimeline>& /*timelines*/) {}
  // Called about every second while the run goes on.
  virtual void keep_alive() {}
};

}  // namespace assay
