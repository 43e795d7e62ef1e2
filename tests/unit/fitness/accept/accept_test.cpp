// A whole acceptance on made-up trials: what is run on which hosts, who is blamed, and what is left of it when it is
// interrupted.
#include "harness/fitness/accept/accept.h"

#include "harness/core/files.h"
#include "harness/fitness/accept/again.h"
#include "harness/fitness/accept/lists.h"
#include "harness/json/members.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::accept {
namespace {

using fitness::Floor;
using fitness::Floors;
using testing::ElementsAre;
using testing::HasSubstr;
using Hosts = std::vector<std::string>;

const std::string gemm_key = "gemm/m=64/n=64", sum_key = "collective/op=all_reduce/bytes=8";

// "a:1,b:1" without the slots.
Hosts hosts_of(const Trial& trial) {
  Hosts hosts;
  std::string name;
  for (const char c : trial.hosts + ",") {
    if (c == ',') hosts.push_back(name.substr(0, name.find(':'))), name.clear();
    if (c != ',') name += c;
  }
  return hosts;
}

TrialResult finished(const Trial& trial, std::vector<Record> records) {
  TrialResult result{.complete = true, .code = 0, .seconds = 1};
  result.run = test::run_of(std::move(records), trial.out.string(),
                            {{"finished", "2026-01-01T00:00:00Z"}, {"each_host", trial.each_host}});
  for (std::size_t i = 0; i < result.run->records.size(); ++i) result.run->lines.push_back(static_cast<int>(i) + 1);
  return result;
}

Record gemm_on(const std::string& host, double value) {
  Record record = test::record_of(gemm_key, {test::metric("throughput", value, "FLOP/s")});
  record.ranks.push_back({0, host, "AMD Zen 5", 1.0});
  record.device = "cpu";
  return record;
}

Record world_of(const Hosts& hosts) {
  Record record = test::record_of(sum_key, {test::metric("busbw", 1e9, "B/s")});
  for (std::size_t i = 0; i < hosts.size(); ++i)
    record.ranks.push_back({static_cast<int>(i), hosts[i], "AMD Zen 5", 1.0});
  record.world_ranks = record.world_nodes = static_cast<int>(hosts.size());
  record.device = "cpu";
  return record;
}

// As a run that ends early: its last line of stderr says anything.
TrialResult lost(const Hosts& names, const std::string& errors) {
  return {.ended = Ended{"a host is gone", names}, .code = 4, .seconds = 1, .errors = errors};
}

// Each trial takes a second. What is not told otherwise finds nothing wrong.
class MadeUp final : public Trials {
 public:
  std::vector<TrialResult> run(const std::vector<Trial>& trials) override {
    std::vector<TrialResult> results;
    for (const Trial& trial : trials) {
      const std::string name = trial.out.empty() ? "audit" : trial.out.filename().string();
      asked.push_back(name);
      seen.push_back(trial);
      const auto own = answers.find(name);
      results.push_back(own != answers.end() ? own->second(trial) : healthy(name, trial));
    }
    return results;
  }
  void wait(Clock::time_point) override {}
  Clock::time_point now() const override { return Clock::time_point(std::chrono::seconds(seen.size())); }
  bool interrupted() const override { return seen.size() >= ends_after; }

  TrialResult healthy(const std::string& name, const Trial& trial) const {
    if (name == "audit") return {.code = 0, .output = dump_document(json_of(audit))};
    std::vector<Record> records;
    if (!trial.each_host) return finished(trial, {world_of(hosts_of(trial))});
    for (const std::string& host : hosts_of(trial)) records.push_back(gemm_on(host, 1e11));
    return finished(trial, std::move(records));
  }

  std::map<std::string, std::function<TrialResult(const Trial&)>> answers = {};  // by folder
  fitness::AuditedFleet audit = {};
  std::vector<std::string> asked = {};
  std::vector<Trial> seen = {};
  std::size_t ends_after = 1000;  // trials; a signal comes in the last one
};

class Acceptances : public testing::Test {
 protected:
  Acceptances() {
    request_.level.name = "tiny";
    for (const std::string_view stage : {"host", "pairs", "collectives"}) {
      request_.level.plans[std::string(stage)] = {"product"};
      request_.level.required.insert(std::string(stage));
    }
    request_.allocation.source = LaunchSource::hostfile;
    request_.state.id = state_form;
    request_.state.device = "cpu";
    request_.state.hostfile = "hosts.txt";
    hosts({"a", "b", "c"});
  }

  void hosts(const Hosts& names) {
    request_.allocation.hosts.clear(), trials_.audit.hosts.clear();
    request_.state.hosts = names;
    for (const std::string& name : names) {
      request_.allocation.hosts.push_back({.name = name, .slots = {}, .user = {}});
      trials_.audit.hosts.emplace_back().host = name;
    }
  }

  Result accept() { return run(request_, trials_, folder_.path()); }
  // Goes on with what is on disk, by other trials.
  Result go_on(MadeUp& trials) {
    Request again = request_;
    again.state = read_state(folder_.path());
    return run(std::move(again), trials, folder_.path());
  }

  static Fitness state(const Result& result, const std::string& host, const std::string& check) {
    return std::ranges::find(result.table.hosts, host, &fitness::AcceptedHost::host)->checks.at(check).state;
  }
  static std::string evidence(const Result& result, const std::string& host, const std::string& check) {
    std::string text;
    for (const std::string& line :
         std::ranges::find(result.table.hosts, host, &fitness::AcceptedHost::host)->checks.at(check).evidence)
      text += line + "\n";
    return text;
  }

  test::TemporaryFolder folder_;
  Request request_;
  MadeUp trials_;
};

TEST_F(Acceptances, EveryStageIsATrialAndIsDoneOnce) {
  const Result first = accept();
  EXPECT_EQ(first.code(), ExitCode::ok);
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "host", "pairs", "collectives"));
  EXPECT_THAT(trials_.seen[0].command,
              ElementsAre("audit", "--json", "--with-bmc-log", "--hosts", "a,b,c", "--hostfile", "hosts.txt"));
  EXPECT_TRUE(trials_.seen[1].each_host);
  EXPECT_FALSE(trials_.seen[1].ranks);
  EXPECT_EQ(trials_.seen[1].hosts, "a:1,b:1,c:1");
  EXPECT_FALSE(trials_.seen[2].each_host);
  EXPECT_EQ(trials_.seen[2].ranks, 3);
  EXPECT_THAT(trials_.seen[2].plan, ElementsAre("product"));
  EXPECT_GT(trials_.seen[2].grace_seconds, 0);
  EXPECT_EQ(first.table.seconds, 4);
  EXPECT_EQ(state(first, "b", "training"), Fitness::unknown);
  EXPECT_EQ(evidence(first, "b", "training"), "level tiny has no plan for it on cpu\n");
  const State kept = read_state(folder_.path());
  EXPECT_TRUE(kept.audited);
  EXPECT_TRUE(kept.stages.at("pairs").front().complete);
}

TEST_F(Acceptances, AHostThatIsLostFailsByItsNameAndNotByWhatIsSaid) {
  int calls = 0;
  trials_.answers["host"] = [&](const Trial& trial) {
    return ++calls == 1 ? lost({"b"}, "assay: a and c are well\n") : trials_.healthy("host", trial);
  };
  const Result result = accept();
  EXPECT_EQ(result.code(), ExitCode::failed);
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "host", "host", "pairs", "collectives"));
  EXPECT_EQ(trials_.seen[2].hosts, "a:1,c:1");
  EXPECT_EQ(state(result, "b", "host"), Fitness::fail);
  EXPECT_THAT(evidence(result, "b", "host"), HasSubstr("lost: assay: a and c are well\n"));
  EXPECT_EQ(state(result, "a", "host"), Fitness::pass);
}

// Bandwidths of 10 between all, but for what the slow host sends.
TrialResult pairs_of(const Trial& trial, const std::string& slow) {
  Record record = world_of(hosts_of(trial));
  record.key = "collective/op=pairwise/bytes=16";
  record.matrix = Matrix{"bandwidth", "B/s", Better::higher, {}, {}};
  for (const RankResult& from : record.ranks) {
    record.matrix->ranks.push_back(from.rank);
    for (const RankResult& to : record.ranks)
      record.matrix->values.push_back(from.rank == to.rank ? std::numeric_limits<double>::quiet_NaN()
                                      : from.host == slow  ? 1
                                                           : 10);
  }
  return finished(trial, {record});
}

TEST_F(Acceptances, SlowPairsAreMeasuredAgainWithOtherPartners) {
  hosts({"a", "b", "c", "d", "e"});
  trials_.answers["pairs"] = [](const Trial& trial) { return pairs_of(trial, "e"); };
  trials_.answers["pairs-2"] = [](const Trial& trial) { return pairs_of(trial, ""); };
  const Result well = accept();
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "host", "pairs", "pairs-2", "collectives"));
  EXPECT_EQ(trials_.seen[3].hosts, "b:1,c:1,d:1,e:1");
  EXPECT_THAT(trials_.seen[3].filter, HasSubstr("pairwise"));
  EXPECT_EQ(well.code(), ExitCode::ok);
  EXPECT_EQ(trials_.seen[4].ranks, 5);
}

TEST_F(Acceptances, AHostThatIsSlowAgainIsNamed) {
  hosts({"a", "b", "c", "d", "e"});
  for (const char* name : {"pairs", "pairs-2"})
    trials_.answers[name] = [](const Trial& trial) { return pairs_of(trial, "e"); };
  const Result result = accept();
  EXPECT_EQ(result.code(), ExitCode::failed);
  EXPECT_EQ(state(result, "e", "pairs"), Fitness::fail);
  EXPECT_EQ(state(result, "a", "pairs"), Fitness::pass);
  EXPECT_EQ(trials_.seen[4].hosts, "a:1,b:1,c:1,d:1");
}

TEST_F(Acceptances, AHostThatIsLostWhilePairsAreMeasuredAgainBlamesNobodyElse) {
  hosts({"a", "b", "c", "d", "e"});
  trials_.answers["pairs"] = [](const Trial& trial) { return pairs_of(trial, "e"); };
  trials_.answers["pairs-2"] = [](const Trial&) { return lost({"b"}, "x\n"); };
  trials_.answers["pairs-3"] = [](const Trial& trial) { return pairs_of(trial, ""); };
  const Result result = accept();
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "host", "pairs", "pairs-2", "pairs-3", "collectives"));
  EXPECT_EQ(state(result, "b", "pairs"), Fitness::fail);
  EXPECT_EQ(state(result, "e", "pairs"), Fitness::pass);
}

TEST_F(Acceptances, ASuspicionThatReturnsFailsTheThirdTime) {
  hosts({"a", "b", "c", "d", "e"});
  for (const char* name : {"pairs", "pairs-2"})
    trials_.answers[name] = [](const Trial& trial) {
      TrialResult result = pairs_of(trial, "");
      Matrix& matrix = *result.run->records.front().matrix;
      const Hosts names = hosts_of(trial);
      const auto at = [&](const char* host) {
        return static_cast<std::size_t>(std::ranges::find(names, host) - names.begin());
      };
      matrix.values[at("b") * names.size() + at("c")] = 1;
      return result;
    };
  const auto past = folder_.path() / "cache" / "suspicions.json";
  const auto accept_on = [&](const std::string& day) {
    test::TemporaryFolder folder;
    request_.state.started = day + "T00:00:00Z";
    return run(request_, trials_, folder.path(), past);
  };
  EXPECT_EQ(accept_on("2025-01-01").code(), ExitCode::no_data);  // too long ago to count later
  EXPECT_EQ(accept_on("2026-01-01").code(), ExitCode::no_data);
  EXPECT_EQ(accept_on("2026-01-02").code(), ExitCode::no_data);
  EXPECT_EQ(accept_on("2026-01-02").code(), ExitCode::no_data);  // the same acceptance, continued
  const Result third = accept_on("2026-01-03");
  EXPECT_EQ(third.code(), ExitCode::failed);
  EXPECT_THAT(evidence(third, "b", "pairs"), HasSubstr("pair b - c is suspected in 3 acceptances since 2026-01-01"));
  EXPECT_EQ(state(third, "a", "pairs"), Fitness::pass);
  std::ofstream(past) << "{";
  const Result broken = accept_on("2026-01-04");
  EXPECT_EQ(broken.code(), ExitCode::no_data);
  EXPECT_THAT(broken.table.notes, testing::Contains(HasSubstr("what earlier acceptances suspected is not known")));
}

TEST_F(Acceptances, AWorldIsRepeatedWithoutTheHostThatItLost) {
  hosts({"a", "b", "c", "d"});
  trials_.answers["pairs"] = [](const Trial&) { return lost({"c", "elsewhere"}, "x\n"); };
  const Result result = accept();
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "host", "pairs", "pairs-2", "collectives"));
  EXPECT_EQ(trials_.seen[3].hosts, "a:1,b:1,d:1");
  EXPECT_EQ(trials_.seen[3].ranks, 3);
  EXPECT_EQ(trials_.seen[4].hosts, "a:1,b:1,d:1");
  EXPECT_EQ(state(result, "c", "pairs"), Fitness::fail);
  EXPECT_EQ(state(result, "a", "pairs"), Fitness::pass);
  EXPECT_EQ(evidence(result, "c", "collectives"), "it failed in pairs\n");
  EXPECT_FALSE(result.broke);
}

TEST_F(Acceptances, AWorldIsRepeatedAtMostThreeTimes) {
  hosts({"a", "b", "c", "d", "e", "f", "g"});
  for (const char* name : {"collectives", "collectives-2", "collectives-3", "collectives-4"})
    trials_.answers[name] = [](const Trial& trial) { return lost({hosts_of(trial).back()}, "x\n"); };
  const Result result = accept();
  EXPECT_THAT(trials_.asked,
              ElementsAre("audit", "host", "pairs", "collectives", "collectives-2", "collectives-3", "collectives-4"));
  EXPECT_EQ(state(result, "d", "collectives"), Fitness::fail);
  EXPECT_EQ(result.code(), ExitCode::failed);
}

TEST_F(Acceptances, ASlowFigureIsMeasuredOnceMoreOnItsHostAlone) {
  Floor floor;
  floor.key = "gemm/*", floor.metric = "throughput", floor.unit = "FLOP/s", floor.limit = 5e10;
  floor.source = "a test", floor.pointer = "/floors/0", floor.protocol = Json::object();
  request_.user = Floors{"f.json", "f", "", {floor}};
  trials_.answers["host"] = [](const Trial& trial) {
    return finished(trial, {gemm_on("a", 1e11), gemm_on("b", 1e10), gemm_on("c", 1e11)});
  };
  for (const double again : {1e11, 2e10}) {
    MadeUp trials = trials_;
    test::TemporaryFolder folder;
    trials.answers["host-2"] = [again](const Trial& trial) { return finished(trial, {gemm_on("b", again)}); };
    const Result result = run(request_, trials, folder.path());
    const auto second = std::ranges::find(trials.asked, "host-2") - trials.asked.begin();
    EXPECT_EQ(trials.seen.at(static_cast<std::size_t>(second)).hosts, "b:1");
    EXPECT_EQ(trials.seen.at(static_cast<std::size_t>(second)).filter, "^(gemm\\/m=64\\/n=64)$");
    EXPECT_EQ(state(result, "b", "host"), again > floor.limit ? Fitness::pass : Fitness::fail);
    EXPECT_EQ(state(result, "a", "host"), Fitness::pass);
    EXPECT_EQ(result.code(), again > floor.limit ? ExitCode::ok : ExitCode::failed);
    EXPECT_EQ(std::filesystem::exists(folder.path() / "evidence/b.tar"), again < floor.limit);
  }
}

// A product of eight GPUs of a host, or of as many as the trial asks for.
Record on_gpus(const std::string& host, int count) {
  Record record = gemm_on(host, 1e11);
  record.device = "cuda";
  record.ranks.clear();
  for (int i = 0; i < count; ++i)
    record.ranks.push_back({i, host, "H100", 1.0, "", "0000:" + std::to_string(i) + "d:00.0"});
  record.world_ranks = count;
  return record;
}

TEST_F(Acceptances, AGpuThatHangsIsLeftOutSoThatTheOthersAreJudged) {
  request_.device = DeviceKind::cuda, request_.ranks_per_host = 8;
  trials_.answers["host"] = [](const Trial& trial) {
    std::vector<Record> records;
    for (const std::string& host : hosts_of(trial)) records.push_back(on_gpus(host, 8));
    Record& hung = records.at(1);
    hung.status = Status::error, hung.reason = "timeout: rank 5 on b", hung.metrics.clear();
    hung.failure = {.kind = FailureKind::timeout, .rank = 5, .host = "b"};
    return finished(trial, std::move(records));
  };
  trials_.answers["host-2"] = [](const Trial& trial) { return finished(trial, {on_gpus("b", trial.ranks.value())}); };
  const Result result = accept();
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "host", "host-2", "pairs", "collectives"));
  EXPECT_EQ(trials_.seen[1].ranks, 8);
  EXPECT_EQ(trials_.seen[2].hosts, "b:8");
  EXPECT_EQ(trials_.seen[2].ranks, 7);
  EXPECT_EQ(trials_.seen[2].environment.at("ASSAY_GPUS"), "0,1,2,3,4,6,7");
  EXPECT_EQ(state(result, "a", "host"), Fitness::pass);
  EXPECT_EQ(state(result, "b", "host"), Fitness::fail);
  EXPECT_THAT(result.table.hosts[1].checks.at("host").culprits,
              ElementsAre(fitness::FailedPart{"gpu", "0000:5d:00.0"}));
}

TEST_F(Acceptances, ARunThatBreaksWithoutALostHostBlamesNoHost) {
  trials_.answers["host"] = [](const Trial&) {
    return TrialResult{.code = 4, .errors = "assay: b: no space left on device\n"};
  };
  const Result result = accept();
  EXPECT_TRUE(result.broke);
  EXPECT_EQ(result.code(), ExitCode::broken);
  for (const char* host : {"a", "b", "c"}) {
    EXPECT_EQ(state(result, host, "host"), Fitness::unsure);
    EXPECT_THAT(evidence(result, host, "host"), HasSubstr("the run is not complete: assay: b: no space"));
  }
}

TEST_F(Acceptances, HostsThatAreAllLostAreNoHostsFault) {
  trials_.answers["host"] = [](const Trial&) { return lost({"a", "b", "c"}, "assay: the network is down\n"); };
  const Result result = accept();
  EXPECT_EQ(trials_.asked[1], "host");
  EXPECT_EQ(state(result, "a", "host"), Fitness::unsure);
  EXPECT_EQ(result.code(), ExitCode::broken);
}

TEST_F(Acceptances, WithoutAnAnswerOfTheAuditNobodyPasses) {
  trials_.answers["audit"] = [](const Trial&) { return TrialResult{.code = 4, .errors = "assay: no such file\n"}; };
  const Result result = accept();
  EXPECT_EQ(state(result, "a", "audit"), Fitness::unsure);
  EXPECT_EQ(evidence(result, "a", "audit"), "the audit gave no answer: assay: no such file\n");
  EXPECT_EQ(state(result, "a", "host"), Fitness::pass);
  EXPECT_EQ(result.code(), ExitCode::broken);
}

TEST_F(Acceptances, AHostThatFailedTheAuditTakesNoPart) {
  trials_.audit.hosts[1].state = fitness::AuditState::unreachable;
  const Result result = accept();
  EXPECT_EQ(state(result, "b", "audit"), Fitness::fail);
  EXPECT_EQ(trials_.seen[1].hosts, "a:1,c:1");
  EXPECT_EQ(evidence(result, "b", "host"), "it failed in audit\n");
}

TEST_F(Acceptances, WhatWasInterruptedGoesOnWhereItWas) {
  trials_.ends_after = 3;  // in the pairs
  const Result first = accept();
  EXPECT_FALSE(first.table.finished);
  EXPECT_EQ(first.code(), ExitCode::no_data);
  EXPECT_EQ(evidence(first, "a", "pairs"), "not reached\n");
  MadeUp others;
  const Result second = go_on(others);
  EXPECT_THAT(others.asked, ElementsAre("pairs", "collectives"));
  EXPECT_TRUE(second.table.finished);
  EXPECT_EQ(second.table.seconds, 5);
}

TEST_F(Acceptances, ARepairedHostIsAcceptedAgainWithPartnersAndTheOthersKeepTheirVerdict) {
  hosts({"a", "b", "c", "d"});
  trials_.audit.hosts[1].state = fitness::AuditState::unreachable;
  const auto file = [&](const char* name) { return read_whole(folder_.path() / name, 10'000); };
  EXPECT_EQ(accept().code(), ExitCode::failed);
  EXPECT_EQ(file(failed_file), "b\n");
  EXPECT_EQ(file(passed_file), "a\nc\nd\n");
  EXPECT_THAT(file(drain_file), HasSubstr("each 'b' 'assay: host, failed in audit'\n"));

  Request request = request_;
  request.state = read_state(folder_.path());
  EXPECT_THROW(add_again(request, "x", folder_.path()), UsageError);
  add_again(request, "b", folder_.path());
  MadeUp others;
  for (const char* name : {"a", "b", "c", "d"}) others.audit.hosts.emplace_back().host = name;
  others.ends_after = 2;
  EXPECT_FALSE(run(request, others, folder_.path()).table.finished);
  EXPECT_THROW(add_again(request, "b", folder_.path()), UsageError);  // it is not finished
  MadeUp rest;
  const Result result = go_on(rest);
  EXPECT_THAT(others.asked, ElementsAre("audit", "host"));
  EXPECT_THAT(rest.asked, ElementsAre("host", "pairs", "collectives"));
  EXPECT_EQ(rest.seen[0].out.parent_path(), folder_.path() / "again-1");
  EXPECT_EQ(rest.seen[0].hosts, "b:1,a:1,c:1,d:1");
  for (const char* check : {"audit", "host", "collectives"})
    EXPECT_EQ(state(result, "b", check), Fitness::pass) << check;
  EXPECT_EQ(result.table.hosts[0].before, Hosts());
  ASSERT_EQ(result.table.hosts[1].before.size(), 1U);
  EXPECT_THAT(result.table.hosts[1].before[0], HasSubstr("audit: unreachable"));
  EXPECT_EQ(file(failed_file), "");
  EXPECT_THAT(file(drain_file), HasSubstr("[ -z \"$undo\" ] || each 'b'\n"));
}

TEST_F(Acceptances, FloorsOfOtherHardwareAreRefusedBeforeAnythingIsMeasured) {
  Floor floor;
  floor.key = "gemm/*", floor.metric = "throughput", floor.unit = "FLOP/s", floor.limit = 1;
  floor.source = "a test", floor.pointer = "/floors/0", floor.protocol = Json::object(), floor.hardware = {"*Zen 5*"};
  request_.user = Floors{"f.json", "f", "", {floor}};
  for (fitness::AuditedHost& host : trials_.audit.hosts) host.facts["cpu"] = "AMD Zen 5";
  trials_.audit.hosts[0].facts["cpu"] = "AMD Zen 4";
  const Result result = accept();
  EXPECT_EQ(state(result, "a", "audit"), Fitness::unsure);
  EXPECT_EQ(state(result, "b", "audit"), Fitness::pass);
  EXPECT_EQ(state(result, "b", "host"), Fitness::pass);
  request_.user->floors[0].hardware = {"*H100*"};
  EXPECT_THAT(test::refusal([&] { settle(request_, trials_.audit); }),
              HasSubstr("floors f (f.json) are for *H100*, and not for AMD Zen 4"));
}

TEST_F(Acceptances, AStageThatTheLevelRequiresAndCannotRunIsNoPass) {
  request_.level.plans["training"] = {};
  request_.level.required.insert("training");
  const Result result = accept();
  EXPECT_EQ(result.table.hosts.front().state(), Fitness::unsure);
  EXPECT_EQ(result.code(), ExitCode::no_data);
}

TEST_F(Acceptances, AFloorThatNothingIsHeldAgainstIsListed) {
  Floor floor;
  floor.key = "memory/*", floor.metric = "bandwidth", floor.unit = "B/s", floor.limit = 1, floor.required = true;
  floor.source = "a test", floor.pointer = "/floors/0", floor.protocol = Json::object();
  request_.user = Floors{"f.json", "f", "", {floor}};
  const Result result = accept();
  ASSERT_EQ(result.table.not_measured.size(), 1U);
  EXPECT_EQ(result.code(), ExitCode::no_data);
}

TEST_F(Acceptances, AFolderThatHoldsSomethingIsNotTaken) {
  begin(folder_.path() / "new", request_.state);
  EXPECT_EQ(read_state(folder_.path() / "new").hosts, request_.state.hosts);
  EXPECT_THROW(begin(folder_.path() / "new", request_.state), UsageError);
  EXPECT_THROW(read_state(folder_.path()), UsageError);
}

}  // namespace
}  // namespace assay::accept
