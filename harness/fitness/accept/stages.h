// The stages of an acceptance, one after the other: what is run, on which hosts, and what follows for them.
#pragma once

#include "harness/fitness/accept/attempts.h"
#include "harness/fitness/cluster/cluster.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::accept {

// Audits every host; absent if a signal ended it.
std::optional<fitness::AuditedFleet> audit_hosts(const Request& request, Trials& trials);
// In the acceptance's folder, so that it is not asked for again.
void keep_audit(Request& request, const fitness::AuditedFleet& audit, const std::filesystem::path& dir);

class Stages {
 public:
  // All must outlive this. `dir`: the acceptance's folder.
  Stages(Request& request, Trials& trials, const std::filesystem::path& dir);

  // What is done already is judged again and not run. False if a signal ended it. Throws UsageError if floors do not
  // fit what was measured, Error if a trial cannot be started or its files cannot be read.
  bool run();

  std::vector<fitness::AcceptedHost>& hosts() { return hosts_; }
  const fitness::AuditedFleet& audit() const { return audit_; }
  const std::vector<fitness::UnmeasuredFloor>& unmeasured() const { return unmeasured_.left(); }
  const fitness::ComparedHosts& compared() const { return compared_; }
  std::vector<fitness::WorldFigure> figures() const;  // in the order of the stages
  std::vector<fitness::SlowSwitch> switches() const;
  const std::vector<Record>& links() const { return links_; }
  const fitness::RailFigures& rails() const { return rails_; }
  // What readers must know: that this is a drill, and which cases ran nowhere.
  std::vector<std::string> notes() const;
  bool is_drill() const { return !drills_.empty(); }
  // Whether the tool failed, not a host.
  bool broke() const { return broke_; }

 private:
  bool make_audit();
  void judge_audit();
  // Those that have not failed.
  std::vector<std::string> remaining() const;
  bool run_on_each(std::string_view stage, const std::vector<std::string>& hosts);
  bool run_together(std::string_view stage, std::vector<std::string> hosts);
  // Absent if the attempt left no run. What kept it from being complete is noted for its hosts.
  std::optional<RunData> run_of(const Attempt& attempt, fitness::HostChecks& checks);
  void keep(std::string_view stage, const fitness::HostChecks& checks);
  fitness::StageFloors floors();

  Request& request_;
  Trials& trials_;
  std::filesystem::path dir_;
  Attempts attempts_;
  fitness::AuditedFleet audit_;
  std::map<std::string, double> port_rates_;
  std::vector<fitness::AcceptedHost> hosts_;
  std::vector<std::string> drills_;
  std::map<std::string_view, std::string> skips_;  // by stage: cases that ran nowhere, what could not be judged
  fitness::UnmeasuredFloors unmeasured_;
  fitness::ComparedHosts compared_;
  std::string unjudged_;                                                   // as of StageFloors
  std::map<std::string_view, std::vector<fitness::WorldFigure>> figures_;  // by stage: of its last attempt
  std::vector<Record> links_;
  fitness::RailFigures rails_;
  std::map<std::string_view, std::vector<fitness::SlowSwitch>> switches_;  // by stage: of its last attempt
  bool broke_ = false;
};

}  // namespace assay::accept
