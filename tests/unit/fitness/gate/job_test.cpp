// A gate among the hosts of a job, on made-up answers and trials.
#include "harness/fitness/gate/job.h"
#include "harness/core/error.h"
#include "harness/fitness/gate/answer.h"
#include "harness/json/json.h"
#include "tests/unit/fitness/gate/made_up_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <limits>

namespace assay::gate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double usual = 1e10, slow = 1e9;  // B/s

std::vector<std::string> names_in(const std::string& hosts) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < hosts.size();) {
    const std::size_t end = std::min(hosts.find(',', at), hosts.size());
    names.push_back(hosts.substr(at, hosts.find(':', at) - at));
    at = end + 1;
  }
  return names;
}

// Bandwidths between every two hosts of a trial; what `slow_host` sends is slow.
TrialResult pairs_of(const Trial& trial, const std::string& slow_host) {
  const std::vector<std::string> names = names_in(trial.hosts);
  Record record;
  record.key = "collective/op=pairwise/bytes=4194304/dtype=f32";
  record.family = "collective";
  record.device = "cpu";
  Matrix matrix{.metric = "bandwidth", .unit = "B/s", .better = Better::higher, .ranks = {}, .values = {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    record.ranks.push_back({static_cast<int>(i), names[i], "a device", 1.0});
    matrix.ranks.push_back(static_cast<int>(i));
    for (std::size_t j = 0; j < names.size(); ++j)
      matrix.values.push_back(i == j ? std::numeric_limits<double>::quiet_NaN() : names[i] == slow_host ? slow : usual);
  }
  record.matrix = std::move(matrix);
  return finished_with(std::move(record), 2);
}

class JobTrials final : public MadeUpClock {
 public:
  std::vector<TrialResult> run(const std::vector<Trial>& trials) override {
    std::vector<TrialResult> results;
    double longest = 0;
    for (const Trial& trial : trials) {
      seen.push_back(trial);
      results.push_back(answer(trial, seen.size()));
      longest = std::max(longest, results.back().seconds);
    }
    pass(longest);
    return results;
  }
  bool interrupted() const override { return false; }

  std::function<TrialResult(const Trial&, std::size_t number)> answer = [](const Trial& trial, std::size_t) {
    return pairs_of(trial, "");
  };
  std::vector<Trial> seen;
};

struct JobTest : testing::Test {
  JobTest() {
    request.catalogue = load_catalogue(std::filesystem::path(ASSAY_SOURCE) / "configs/gate.json");
    request.start = trials.now();
    set_hosts(4);
  }
  void set_hosts(int count) {
    job.source = LaunchSource::slurm;
    job.hosts.clear();
    for (int i = 1; i <= count; ++i) job.hosts.push_back({fmt::format("n{}", i), std::nullopt, "", i == 1});
  }
  Answer run() {
    const Ask ask = [this](const Allocation& hosts, const std::vector<std::string>& words, double) {
      asked = words;
      std::vector<HostAnswer> answers;
      for (const AllocatedHost& host : hosts.hosts) {
        const auto own = said.find(host.name);
        answers.push_back(own != said.end() ? own->second : HostAnswer{host.name, 0, says("ok"), ""});
        answers.back().host = host.name;
      }
      return answers;
    };
    return run_job_gate(request, job, "", trials, ask, "/nowhere");
  }
  static std::string says(const std::string& verdict, const Json& findings = Json::array()) {
    return dump_line({{"verdict", verdict}, {"findings", findings}, {"tests", Json::array()}, {"notes", {"why"}}});
  }
  static Fitness verdict_of(const Answer& answer, const std::string& host) {
    return std::ranges::find(answer.hosts, host, &JobHost::host)->verdict;
  }

  JobTrials trials;
  Request request;
  Allocation job;
  std::map<std::string, HostAnswer> said;
  std::vector<std::string> asked;
};

TEST_F(JobTest, SoundHostsPassAndAreMeasuredOnce) {
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::pass);
  EXPECT_THAT(answer.exclude, IsEmpty());
  ASSERT_EQ(trials.seen.size(), 1u);
  EXPECT_EQ(trials.seen[0].hosts, "n1:1,n2:1,n3:1,n4:1");
  EXPECT_EQ(trials.seen[0].device, "cpu");
  EXPECT_THAT(asked, Contains("--alone"));
}

TEST_F(JobTest, ASlowHostIsNamedOnceItIsSlowWithOtherPartnersToo) {
  trials.answer = [](const Trial& trial, std::size_t) { return pairs_of(trial, "n3"); };
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::fail);
  EXPECT_THAT(answer.exclude, ElementsAre("n3"));
  EXPECT_EQ(answer.decision.findings.front().host, "n3");
  EXPECT_EQ(request.catalogue.of(answer.decision.findings.front().id).code, "ASSAY-NET-019");
  ASSERT_EQ(trials.seen.size(), 2u);
  EXPECT_EQ(names_in(trials.seen[1].hosts).size(), 4u);  // with three partners
  EXPECT_THAT(answer_text(request, answer, ExitStyle::assay), HasSubstr("exclude: n3\n"));
}

TEST_F(JobTest, AHostThatWasSlowOnceIsNot) {
  trials.answer = [](const Trial& trial, std::size_t number) { return pairs_of(trial, number == 1 ? "n3" : ""); };
  EXPECT_EQ(run().decision.verdict, Fitness::pass);
}

TEST_F(JobTest, WithoutTimeToMeasureAgainItIsOnlySuspect) {
  request.budget = 5;
  trials.answer = [](const Trial& trial, std::size_t) {
    TrialResult result = pairs_of(trial, "n3");
    result.seconds = 4;
    return result;
  };
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unsure);
  EXPECT_EQ(verdict_of(answer, "n3"), Fitness::unsure);
  EXPECT_THAT(answer.exclude, IsEmpty());
}

TEST_F(JobTest, AHostThatDrainsByItselfIsLeftOutAndTheOthersAreMeasured) {
  said["n2"] = {"", 1, says("drain", {{{"id", "xid-fatal"}, {"severity", "fault"}, {"text", "XID 79"}}}), ""};
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::fail);
  EXPECT_THAT(answer.exclude, ElementsAre("n2"));
  EXPECT_EQ(trials.seen.at(0).hosts, "n1:1,n3:1,n4:1");
}

TEST_F(JobTest, AHostThatDoesNotArriveIsNamedAndNothingPasses) {
  said["n4"] = {"", std::nullopt, "", "no answer within 15 s"};
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unknown);
  EXPECT_THAT(answer.decision.why_not, HasSubstr("host n4 did not arrive: no answer within 15 s"));
  EXPECT_THAT(answer.exclude, ElementsAre("n4"));
  EXPECT_EQ(trials.seen.at(0).hosts, "n1:1,n2:1,n3:1");
}

TEST_F(JobTest, AHostThatIsLostBeforeTheMeasurementLeavesTheOthersToBeMeasured) {
  trials.answer = [](const Trial& trial, std::size_t number) {
    if (number > 1) return pairs_of(trial, "");
    TrialResult result{.seconds = 1, .errors = "host n4 cannot be reached"};
    result.ended = Ended{.reason = "lost", .lost = {"n4"}};
    return result;
  };
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unknown);
  EXPECT_THAT(answer.exclude, ElementsAre("n4"));
  EXPECT_EQ(trials.seen.at(1).hosts, "n1:1,n2:1,n3:1");
}

TEST_F(JobTest, OneThatWasNotAskedAmong200IsNotJudgedAndNotExcluded) {
  set_hosts(200);
  said["n200"] = {"", std::nullopt, "", "this process may not open files for more hosts", false};
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unknown);
  EXPECT_THAT(answer.decision.why_not, HasSubstr("host n200 was not asked: this process may not open"));
  EXPECT_THAT(answer.exclude, IsEmpty());
  EXPECT_EQ(verdict_of(answer, "n200"), Fitness::unknown);
  EXPECT_THAT(answer_text(request, answer, ExitStyle::assay), HasSubstr("n200             not_judged\n"));
  EXPECT_EQ(names_in(trials.seen.at(0).hosts).size(), 199u);
}

TEST_F(JobTest, AnAnswerThatIsNoneAndAHostThatWasNotJudgedDoNotPass) {
  said["n2"] = {"", 0, "welcome to n2", ""};
  said["n3"] = {"", 3, says("not_judged"), ""};
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unknown);
  EXPECT_THAT(answer.notes, Contains(HasSubstr("n3 was not judged: why")));
  EXPECT_THAT(answer.exclude, ElementsAre("n2"));
  EXPECT_EQ(verdict_of(answer, "n3"), Fitness::unknown);
}

TEST_F(JobTest, WhatWasNotMeasuredTogetherDoesNotPass) {
  trials.answer = [](const Trial&, std::size_t) {
    return TrialResult{.failure = Failure{.kind = FailureKind::timeout}, .seconds = 14};
  };
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unknown);
  EXPECT_THAT(answer.decision.why_not, HasSubstr("not measured together: not done after 14 s"));
}

TEST_F(JobTest, WhatIsSkippedOnAllHostsDoesNotPass) {
  trials.answer = [](const Trial& trial, std::size_t) {
    TrialResult result = pairs_of(trial, "");
    result.run->records[0].status = Status::skipped;
    result.run->records[0].reason = "no MPI";
    return result;
  };
  const Answer answer = run();
  EXPECT_EQ(answer.decision.verdict, Fitness::unknown);
  EXPECT_THAT(answer.decision.why_not, HasSubstr("no MPI"));
  EXPECT_THAT(answer.decision.findings, IsEmpty());
}

Environment of(std::map<std::string, std::string> variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(FindJob, SaysThatOtherHostsOfTheJobWereNotJudged) {
  EXPECT_THAT(why_only_here(of({})), IsEmpty());
  EXPECT_THAT(why_only_here(of({{"OMPI_COMM_WORLD_SIZE", "8"},
                                {"OMPI_COMM_WORLD_RANK", "0"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})),
              HasSubstr("only this host was judged, and not what is between the hosts of "));
  EXPECT_THAT(why_only_here(of({{"ASSAY_SUPERVISOR", "n1:2900"},
                                {"ASSAY_SIZE", "4"},
                                {"ASSAY_RANK", "2"},
                                {"ASSAY_TOKEN", "a word of our own"}})),
              HasSubstr("ASSAY_SUPERVISOR=n1:2900"));
  EXPECT_THAT(why_only_here(of({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-4]"}})), HasSubstr("Slurm job 7"));
}

TEST(FindJob, IsTheStepOfSrunAndNeitherABatchScriptNorAProlog) {
  const auto job = [](const std::map<std::string, std::string>& variables) { return find_job("", of(variables)); };
  std::map<std::string, std::string> all{{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-4]"}};
  EXPECT_FALSE(job({}));
  EXPECT_FALSE(job(all));
  all.insert({{"SLURM_STEP_NODELIST", "n[1-4]"},
              {"SLURM_STEP_NUM_TASKS", "4"},
              {"SLURM_STEP_TASKS_PER_NODE", "1(x4)"},
              {"SLURM_PROCID", "2"},
              {"SLURM_LOCALID", "0"}});
  ASSERT_TRUE(job(all));
  EXPECT_EQ(job(all)->hosts.size(), 4u);
  EXPECT_EQ(job(all)->part, Part::bystander);
}

}  // namespace
}  // namespace assay::gate
