// The search for the fastest algorithm and the cache of its results, with scripted times.
#include "workloads/ops/algorithm_cache.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace assay::ops {
namespace {

class Scripted final : public CandidateTimer {
 public:
  explicit Scripted(std::vector<std::optional<double>> times) : times_(std::move(times)), calls_(times_.size()) {}

  std::optional<double> seconds(std::size_t candidate, int repetitions) override {
    ++calls_[candidate];
    max_repetitions = std::max(max_repetitions, repetitions);
    if (outlier_of == static_cast<int>(candidate) && calls_[candidate] == 3) return 100.0;
    const double factor = spent < slow_for ? 5 : 1;
    spent += times_[candidate].value_or(0) * factor * repetitions;
    return times_[candidate] ? std::optional(*times_[candidate] * factor) : std::nullopt;
  }

  double slow_for = 0;  // seconds of work until clocks are at full speed
  int outlier_of = -1;  // this candidate's third call returns an outlier
  int max_repetitions = 0;
  double spent = 0;
  const std::vector<int>& calls() const { return calls_; }

 private:
  std::vector<std::optional<double>> times_;
  std::vector<int> calls_;
};

TEST(FindFastest, ComparesMediansSoOneOutlierDoesNotMatter) {
  Scripted timer({3e-3, 2e-3, 2.5e-3});
  timer.outlier_of = 1;
  EXPECT_EQ(find_fastest(3, timer), 1u);
}

TEST(FindFastest, PrefersTheFirstOfEqualOnes) {
  Scripted timer({2.2e-3, 2.005e-3, 2e-3});
  EXPECT_EQ(find_fastest(3, timer), 1u);
}

TEST(FindFastest, IgnoresThoseThatFail) {
  Scripted timer({std::nullopt, 2e-3, std::nullopt, 1e-3});
  EXPECT_EQ(find_fastest(4, timer), 3u);
  Scripted none({std::nullopt, std::nullopt});
  EXPECT_EQ(find_fastest(2, none), std::nullopt);
  EXPECT_EQ(find_fastest(0, none), std::nullopt);
}

TEST(FindFastest, DropsSlowOnesAndKeepsTheBudget) {
  Scripted timer({1e-2, 1.1e-2, 1.0});
  EXPECT_EQ(find_fastest(3, timer, {.budget_seconds = 0.1}), 0u);
  EXPECT_EQ(timer.calls()[2], 2);
  EXPECT_LT(timer.spent, 2 * (1.0 + 0.021) + 0.11 + 0.021);
  EXPECT_GE(timer.calls()[1], 4);
}

TEST(FindFastest, DropsNoneForRunningWhileClocksWereLow) {
  Scripted timer({1e-3, 1.4e-3});
  timer.slow_for = 0.015;
  EXPECT_EQ(find_fastest(2, timer), 0u);
}

TEST(FindFastest, RepeatsShortOnesManyTimesPerSample) {
  Scripted timer({2e-6, 1e-6});
  EXPECT_EQ(find_fastest(2, timer), 1u);
  EXPECT_GE(timer.max_repetitions, 100);
  EXPECT_LE(timer.max_repetitions, SearchLimits{}.max_repetitions);
}

bool accept_all(const std::string&) { return true; }

class CacheFolder : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string text(const std::filesystem::path& file) {
    std::ifstream in(file);
    return (std::ostringstream() << in.rdbuf()).str();
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      (std::string("assay-algorithms-") + testing::UnitTest::GetInstance()->current_test_info()->name() + "-" +
       std::to_string(::getpid()));
};

TEST_F(CacheFolder, SearchesOncePerKeyAndRemembersForTheNextProcess) {
  int searches = 0;
  const auto search = [&] { return ++searches, std::string("algorithm 7"); };
  AlgorithmCache cache(folder_, "library 1 GPU/x");
  EXPECT_EQ(cache.find("a", accept_all, search), "algorithm 7");
  EXPECT_EQ(cache.find("a", accept_all, search), "algorithm 7");
  EXPECT_EQ(searches, 1);
  AlgorithmCache next(folder_, "library 1 GPU/x");
  EXPECT_EQ(next.find("a", accept_all, search), "algorithm 7");
  EXPECT_EQ(searches, 1);
  next.find("b", accept_all, search);
  EXPECT_EQ(searches, 2);
  AlgorithmCache other(folder_, "library 2 GPU/x");
  EXPECT_EQ(other.size(), 0u);
  EXPECT_EQ(text(folder_ / "algorithms" / "library-1-GPU-x.txt"), "a\talgorithm 7.\nb\talgorithm 7.\n");
}

TEST_F(CacheFolder, SearchesAgainIfTheAlgorithmIsNotAcceptedAndKeepsNoEmptyResult) {
  const auto found = [](const char* name) { return [name] { return std::string(name); }; };
  const auto accept_one = [](const std::string& name) { return name == "one"; };
  AlgorithmCache cache(folder_, "x");
  EXPECT_EQ(cache.find("a", accept_all, found("")), "");
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.find("a", accept_all, found("gone")), "gone");
  EXPECT_EQ(cache.find("a", accept_one, found("one")), "one");
  // The next process, too, finds what was searched last.
  EXPECT_EQ(AlgorithmCache(folder_, "x").find("a", accept_one, found("another")), "one");
}

TEST_F(CacheFolder, IgnoresIncompleteAndInvalidLines) {
  const std::filesystem::path file = folder_ / "algorithms" / "x.txt";
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "whole\t1 2.\nno tab\n\nempty\t.\ntorn\t1 2";
  EXPECT_EQ(AlgorithmCache(folder_, "x").size(), 1u);
}

TEST_F(CacheFolder, WorksIfTheFolderCannotBeWritten) {
  AlgorithmCache cache("/proc/nowhere", "x");
  EXPECT_EQ(cache.find("a", accept_all, [] { return std::string("one"); }), "one");
}

}  // namespace
}  // namespace assay::ops
