// Partition, stragglers, stalls and overhead of made-up steps, what is concluded from them, and how it reads.
#include "harness/watch/steps.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/text.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace assay::watch {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t many = 400;

// 100 ms: 10 waiting for data, 40 backward, 20 in collectives, 5 optimizer, 25 forward.
Step plain(double end) {
  Step step{end, 0.1, 0.01, 0.04, 0.02, 0.005, 0, 0.06};
  step.parts = true, step.ready = 0.0;
  return step;
}

RankSteps rank_of(int rank, std::size_t count = many) {
  RankSteps made{rank, {}};
  for (std::size_t i = 0; i < count; ++i) made.steps.push_back(plain(0.1 * static_cast<double>(i + 1)));
  return made;
}

// A rank's backward takes longer; the others wait for it in their collectives.
std::vector<RankSteps> with_late(int world, int slow, double seconds) {
  std::vector<RankSteps> ranks;
  for (int r = 0; r < world; ++r) {
    ranks.push_back(rank_of(r));
    for (Step& step : ranks.back().steps) {
      step.total += seconds;
      (r == slow ? step.backward : step.communication) += seconds;
    }
  }
  return ranks;
}

std::vector<std::string> rules_of(const std::vector<Diagnosis>& found) {
  std::vector<std::string> rules;
  for (const Diagnosis& one : found) rules.push_back(one.rule);
  return rules;
}

double part_of(const JobSteps& job, Part part) { return job.parts[static_cast<std::size_t>(part)]; }

TEST(WatchSteps, ThePartsSumToTheStep) {
  const auto job = steps_of_job(with_late(4, 2, 0.03));
  ASSERT_TRUE(job);
  EXPECT_NEAR(job->summary.median, 0.13, 1e-12);
  EXPECT_NEAR(std::accumulate(job->parts.begin(), job->parts.end(), 0.0), job->step, 1e-9);
  for (const RankParts& rank : job->ranks)
    EXPECT_NEAR(std::accumulate(rank.parts.begin(), rank.parts.end(), 0.0), rank.step, 1e-9);
  EXPECT_NEAR(part_of(*job, Part::communication), 0.02, 1e-12);    // what the slowest rank spends in it
  EXPECT_NEAR(part_of(*job, Part::waiting), 0.03 * 3 / 4, 1e-12);  // the other three
  EXPECT_NEAR(job->ranks[2].parts[static_cast<std::size_t>(Part::waiting)], 0, 1e-12);
}

TEST(WatchSteps, TheRankThatOthersWaitForIsNamedByItsOwnTime) {
  const auto job = steps_of_job(with_late(4, 2, 0.03));
  ASSERT_TRUE(job && job->straggler);
  EXPECT_EQ(job->straggler->rank, 2);
  EXPECT_EQ(job->straggler->part, Part::backward);
  EXPECT_NEAR(job->straggler->share_of_steps, 1, 1e-9);
  EXPECT_NEAR(job->straggler->saved, 0.03, 1e-9);
  EXPECT_FALSE(steps_of_job({rank_of(0)})->straggler);
}

// Ranks that are alike, whose own times scatter by chance; each waits for the last.
std::vector<RankSteps> alike(int world, std::size_t count, double scatter, std::mt19937& random) {
  std::lognormal_distribution<double> times(0, scatter);
  std::vector<RankSteps> ranks;
  for (int r = 0; r < world; ++r) ranks.push_back(rank_of(r, count));
  for (std::size_t i = 0; i < count; ++i) {
    double longest = 0;
    for (RankSteps& rank : ranks) longest = std::max(longest, rank.steps[i].backward = 0.04 * times(random) + 0.02);
    for (RankSteps& rank : ranks) {
      rank.steps[i].communication = 0.002 + longest - rank.steps[i].backward;
      rank.steps[i].total = 0.042 + longest;  // with 40 ms of other parts
    }
  }
  return ranks;
}

TEST(WatchSteps, RanksThatAreAlikeHaveNoStraggler) {
  std::mt19937 random(7);
  int named = 0, jobs = 0;
  for (const int world : {2, 3, 8})
    for (const std::size_t count : {12, 30, 100, 300})
      for (int i = 0; i < 25; ++i) {
        const auto job = steps_of_job(alike(world, count, 0.1, random));
        ASSERT_TRUE(job && job->straggler);
        ++jobs;
        for (const std::string& rule : rules_of(diagnose(*job, {.ranks = world, .cpus = 16})))
          named += rule == "imbalance" ? 1 : 0;
      }
  EXPECT_EQ(named, 0) << "of " << jobs;
}

TEST(WatchSteps, AStragglersGainIsWhatItIsBehind) {
  std::mt19937 random(7);
  std::vector<RankSteps> ranks = alike(2, 200, 0.1, random);
  for (Step& step : ranks[1].steps) step.backward += 0.01, step.total += 0.01;
  for (Step& step : ranks[0].steps) step.communication += 0.01, step.total += 0.01;
  const auto job = steps_of_job(ranks);
  ASSERT_TRUE(job && job->straggler);
  EXPECT_TRUE(job->straggler->persistent);
  EXPECT_EQ(job->straggler->rank, 1);
  EXPECT_NEAR(job->straggler->saved, 0.01, 0.001);  // and not the scatter besides
  EXPECT_GE(job->straggler->skew, job->straggler->saved);
}

TEST(WatchSteps, FewStepsTellAStragglerOnlyIfTheyAreEqual) {
  for (const double scatter : {0.01, 0.5}) {
    std::mt19937 random(7);
    std::vector<RankSteps> ranks = alike(2, 5, scatter, random);
    for (Step& step : ranks[1].steps) step.backward += 0.02, step.total += 0.02;
    const auto job = steps_of_job(ranks);
    ASSERT_TRUE(job && job->straggler);
    EXPECT_EQ(job->straggler->persistent, scatter < 0.1) << scatter;
  }
}

TEST(WatchSteps, WhatRanksWaitForACpuIsNoUnequalWork) {
  std::mt19937 random(7);
  std::vector<RankSteps> ranks = alike(2, 200, 0.5, random);
  const auto unequal = steps_of_job(ranks);
  EXPECT_THAT(rules_of(diagnose(*unequal, {.ranks = 2, .cpus = 16})), Contains("imbalance"));
  for (RankSteps& rank : ranks)
    for (Step& step : rank.steps) step.ready = step.backward - 0.02;
  EXPECT_THAT(rules_of(diagnose(*steps_of_job(ranks), {.ranks = 2, .cpus = 16})), Not(Contains("imbalance")));
}

TEST(WatchSteps, StepsOfBlocksWithoutHooksTellTheOverhead) {
  RankSteps rank = rank_of(0);
  for (std::size_t i = 0; i < 294; ++i) {
    rank.steps[i].parts = (i / 7) % 2 == 0;
    if (rank.steps[i].parts) rank.steps[i].total += 0.002;
  }
  const auto job = steps_of_job({rank});
  ASSERT_TRUE(job && job->overhead && job->overhead->ci95);
  EXPECT_NEAR(job->overhead->share, 0.02, 1e-9);
  // A job that becomes faster from block to block is none whose hooks cost something.
  RankSteps faster = rank;
  for (std::size_t i = 0; i < faster.steps.size(); ++i) faster.steps[i].total *= 1 - 0.001 * static_cast<double>(i / 7);
  EXPECT_NEAR(steps_of_job({faster})->overhead->share, 0.02, 1e-3);
  EXPECT_FALSE(steps_of_job({rank_of(0, 30)})->overhead);  // too few blocks to tell
}

// A profiler recorded on one rank, so the other waited; blocks of 7 steps with all hooks and with fewer took turns.
TEST(WatchSteps, StepsThatAProfilerRecordedCountForNothing) {
  std::vector<RankSteps> ranks = with_late(2, 1, 0.03);
  for (RankSteps& rank : ranks)
    for (std::size_t i = 7; i < 294; ++i)
      if (i / 7 % 2 == 1) rank.steps[i].parts = false, rank.steps[i].total *= 0.98;
  for (RankSteps& rank : ranks) rank.steps[200].total += 5, rank.steps[201].total += 5;
  const auto without = steps_of_job(ranks);
  for (std::size_t i = 10; i < 15; ++i) {
    for (RankSteps& rank : ranks) rank.steps[i].total += 3, rank.steps[i].backward += 3;
    ranks[1].steps[i].recorded = true;
  }
  const auto job = steps_of_job(ranks);
  ASSERT_TRUE(without && job && job->overhead && job->straggler);
  EXPECT_EQ(job->recorded, 5);
  EXPECT_EQ(without->recorded, 0);
  EXPECT_EQ(job->count, without->count);
  EXPECT_EQ(job->seconds.size() + 5, without->seconds.size());
  EXPECT_EQ(job->ends.size(), job->seconds.size());
  EXPECT_EQ(job->summary.median, without->summary.median);
  EXPECT_NEAR(job->overhead->share, without->overhead->share, 1e-12);
  EXPECT_NEAR(part_of(*job, Part::backward), part_of(*without, Part::backward), 1e-12);
  EXPECT_NEAR(job->straggler->saved, without->straggler->saved, 1e-12);
  EXPECT_EQ(job->stalls.count, 2);
  EXPECT_EQ(job->stalls.first, without->stalls.first);  // by their numbers in the job
  EXPECT_EQ(job->stalls.last, 202);
  for (Step& step : ranks[0].steps) step.recorded = true;
  EXPECT_FALSE(steps_of_job(ranks));
}

TEST(WatchSteps, StallsHaveTheirPeriod) {
  RankSteps rank = rank_of(0);
  for (std::size_t i = 19; i < many; i += 20) rank.steps[i].total += 0.5;
  const auto job = steps_of_job({rank});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->stalls.every, 20);
  EXPECT_NEAR(job->stalls.share, 0.025 / 0.125, 0.01);
}

TEST(WatchSteps, StepsWhoseBackwardIsLongerTooAreNoStalls) {
  for (const bool both : {false, true}) {
    RankSteps rank = rank_of(0);
    for (Step& step : rank.steps) step.data_wait = 0;
    for (std::size_t i = 13; i < many; i += 17) {
      rank.steps[i].total += 0.2;
      if (both) rank.steps[i].backward += 0.08;
    }
    const auto job = steps_of_job({rank});
    ASSERT_TRUE(job);
    EXPECT_EQ(job->stalls.of_passes, both);
    const auto rules = rules_of(diagnose(*job, {.cpus = 16}));
    if (both)
      EXPECT_THAT(rules, Not(Contains("stalls")));
    else
      EXPECT_THAT(rules, Contains("stalls"));
  }
}

TEST(WatchSteps, RanksThatMadeTooFewStepsAreLeftOut) {
  EXPECT_FALSE(steps_of_job({}));
  EXPECT_FALSE(steps_of_job({rank_of(0, 2)}));
  EXPECT_EQ(steps_of_job({rank_of(0), rank_of(1, 1)})->ranks.size(), 1u);
}

TEST(WatchDiagnosis, ASoundJobIsQuiet) {
  Surroundings around{.ranks = 4, .cpus = 16, .threads = 2, .job_cpus = 8};
  std::vector<RankSteps> ranks = with_late(4, 0, 0);
  for (RankSteps& rank : ranks)
    for (Step& step : rank.steps) step.data_wait = 0.001, step.communication = 0.002, step.cpu = 0.097;
  const auto job = steps_of_job(ranks);
  EXPECT_THAT(rules_of(diagnose(*job, around)), testing::IsEmpty());
  EXPECT_THAT(not_the_cause(*job, around), Contains(HasSubstr("data (1.0 %)")));
}

TEST(WatchDiagnosis, TheCauseWithMostToGainComesFirstWithItsChange) {
  const auto job = steps_of_job(with_late(4, 2, 0.06));
  Surroundings around{.ranks = 4, .cpus = 16, .threads = 2, .job_cpus = 8};
  const auto found = diagnose(*job, around);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, "imbalance");
  EXPECT_THAT(found.front().says, HasSubstr("rank 2: its backward pass"));
  EXPECT_NEAR(found.front().gain, 0.16 / 0.10, 1e-6);
  EXPECT_THAT(rules_of(found), Contains("comm-exposed"));
  for (std::size_t i = 1; i < found.size(); ++i) EXPECT_LE(found[i].gain, found[i - 1].gain);
}

TEST(WatchDiagnosis, ALoadersChangeDependsOnItsWorkers) {
  RankSteps rank = rank_of(0);
  for (Step& step : rank.steps) step.total += 0.1, step.data_wait += 0.1, step.communication = 0, step.cpu = 0.1;
  const auto job = steps_of_job({rank});
  const auto change = [&](const Workers& workers, double job_cpus) {
    const auto found = diagnose(*job, {.cpus = 8, .job_cpus = job_cpus, .workers = workers});
    return found.empty() || found.front().rule != "data-starved" ? "" : found.front().change;
  };
  EXPECT_THAT(change({}, 1), HasSubstr("num_workers=3"));
  EXPECT_THAT(change({2, 0.98, 0}, 3), HasSubstr("5 idle CPUs -> num_workers=6"));
  EXPECT_THAT(change({2, 0.98, 0}, 8), HasSubstr("no idle CPU"));
  EXPECT_THAT(change({2, 0.1, 0.9}, 3), HasSubstr("waiting for storage 90 %"));
  EXPECT_THAT(change({2, 0.1, 0}, 3), HasSubstr("mostly wait"));
  EXPECT_THAT(change({2, {}, 0}, 3), HasSubstr("cannot keep up"));
}

TEST(WatchDiagnosis, WorkersThatWaitNeedNoCpus) {
  const auto change = [](double computed_share) {
    RankSteps rank = rank_of(0);
    for (Step& step : rank.steps) {
      step.total += 0.4, step.data_wait += 0.4, step.communication = 0;
      step.cpu = 0.09 + computed_share * step.data_wait;
    }
    const auto found = diagnose(*steps_of_job({rank}), {.cpus = 2, .job_cpus = 0.5});
    return found.empty() || found.front().rule != "data-starved" ? "" : found.front().change;
  };
  EXPECT_EQ(change(1), "the step itself loads its data -> DataLoader(num_workers=2)");
  EXPECT_EQ(change(0), "the step itself loads its data, and mostly waits for it -> DataLoader(num_workers=6)");
}

TEST(WatchDiagnosis, WaitsForCpusAreTheQuotasTheNeighboursOrItsOwn) {
  RankSteps rank = rank_of(0);
  for (Step& step : rank.steps) step.ready = 0.03, step.communication = 0, step.data_wait = 0, step.cpu = 0.07;
  const auto job = steps_of_job({rank});
  const auto rule = [&](const Surroundings& around) { return rules_of(diagnose(*job, around)); };
  EXPECT_THAT(rule({.cpus = 2, .threads = 8, .job_cpus = 2}), testing::ElementsAre("cpu-oversubscribed"));
  EXPECT_THAT(rule({.cpus = 2, .threads = 2, .job_cpus = 1, .outside = 1.0}), testing::ElementsAre("neighbours"));
  EXPECT_THAT(rule({.cpus = 2, .threads = 8, .job_cpus = 1, .quota = 1.0}), testing::ElementsAre("quota"));
  // A machine with idle CPUs, and a job that wants no more: its thread waits for no reason that is known.
  EXPECT_THAT(rule({.cpus = 64, .threads = 2, .job_cpus = 1}), testing::IsEmpty());
  // One thread for each CPU, and others use little of them: there are no threads to leave out.
  EXPECT_THAT(rule({.ranks = 2, .cpus = 2, .threads = 1, .job_cpus = 1.8, .outside = 0.05}), testing::IsEmpty());
  const auto change = [&](int ranks, int threads, int workers) {
    const Surroundings around{
        .ranks = ranks, .cpus = 4, .threads = threads, .job_cpus = 4, .workers = {workers, {}, 0}};
    return diagnose(*job, around).at(0).change;
  };
  EXPECT_EQ(change(2, 4, 0), "OMP_NUM_THREADS=2");
  EXPECT_EQ(change(1, 4, 1), "OMP_NUM_THREADS=3");
  EXPECT_EQ(change(2, 1, 4), "DataLoader(num_workers=1)");
  EXPECT_EQ(change(4, 1, 1), "more CPUs, or fewer ranks");
}

TEST(WatchDiagnosis, PausesAndMemory) {
  RankSteps rank = rank_of(0);
  for (Step& step : rank.steps) step.cpu = 0.03, step.communication = 0, step.data_wait = 0;
  const auto idle = steps_of_job({rank});
  EXPECT_THAT(rules_of(diagnose(*idle, {.cpus = 8})), testing::ElementsAre("host-idle"));
  EXPECT_THAT(rules_of(diagnose(*idle, {.cpus = 8, .cuda = true})), testing::IsEmpty());
  EXPECT_THAT(rules_of(diagnose(*idle, {.cpus = 8, .memory = 95.0, .memory_room = 100.0})), Contains("memory-edge"));
  for (std::size_t i = 19; i < many; i += 20) rank.steps[i].total += 0.5, rank.steps[i].checkpoint = 0.5;
  const auto saving = diagnose(*steps_of_job({rank}), {.cpus = 8});
  ASSERT_FALSE(saving.empty());
  EXPECT_THAT(rules_of(saving), Contains("stalls"));
}

TEST(WatchText, BarsAreOfOneWidthAndNameWhoIsWaitedFor) {
  const std::string text = bars(*steps_of_job(with_late(4, 2, 0.06)));
  std::istringstream lines(text);
  std::vector<std::size_t> ends;
  for (std::string line; std::getline(lines, line);) {
    ends.push_back(line.rfind('|'));
    const bool named = line.find("waited for") != line.npos;
    EXPECT_EQ(named, line.starts_with("rank 2")) << line;
  }
  EXPECT_EQ(ends.size(), 5u);
  for (const std::size_t end : ends) EXPECT_EQ(end, ends.front());
}

TEST(WatchText, TheEndNamesCauseChangeAndGain) {
  const auto job = steps_of_job(with_late(2, 1, 0.06));
  Shown shown{
      .name = "finetune", .seconds = 40, .use = {}, .steps = job, .items = 1000, .unit = "tokens", .run = "runs/x"};
  shown.found = diagnose(*job, {.ranks = 2, .cpus = 8});
  const std::string text = end_text(shown);
  EXPECT_THAT(text, HasSubstr("finetune · 2 ranks · 400 steps of 160 ms"));
  EXPECT_THAT(text, HasSubstr("6,250 tokens/s"));
  EXPECT_THAT(text, HasSubstr("Change first: the others wait for rank 1"));
  EXPECT_THAT(text, HasSubstr("at most 1.60 x"));
  EXPECT_THAT(text, HasSubstr("assay report runs/x"));
  shown.steps.reset(), shown.why_no_steps = "Python's option -S skips the hook in it";
  EXPECT_THAT(end_text(shown), HasSubstr("No steps: Python's option -S"));
}

TEST(WatchText, ARankThatSkippedACollectiveIsNamed) {
  const auto lines = standing_lines(
      {{0, 40, 12, "barrier", "wait (c10d.py:3) < main (train.py:9)"}, {1, 40, 11, "barrier", "sleep (train.py:30)"}});
  EXPECT_THAT(lines[0], Not(HasSubstr("has not entered")));
  EXPECT_THAT(lines[1],
              HasSubstr("rank 1: 40 steps, in or after collective 11 (barrier), has not entered 12 (barrier)"));
}

}  // namespace
}  // namespace assay::watch
