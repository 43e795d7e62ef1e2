// A folder of plan files, and what expanding them gives or refuses.
#pragma once

#include "harness/plan/plan.h"
#include "tests/support/refusal.h"
#include "tests/unit/plan/fake_families.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace assay {

namespace fs = std::filesystem;

class PlanTest : public testing::Test {
 protected:
  PlanTest() : dir_(fs::path(testing::TempDir()) / ("plan" + std::to_string(getpid()))) {
    fs::create_directories(dir_ / "plans");
    limits_.memory_bytes = std::uint64_t{1} << 30;
    limits_.cpus = 2;
    request_.configs = dir_;
  }
  ~PlanTest() override { fs::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = dir_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  Plan expand() { return expand_plan(request_, families_, limits_); }
  Plan expand_text(const std::string& text) {
    request_.targets = {write("p.json", text)};
    return expand();
  }
  // The entries of a plan.
  Plan expand_cases(const std::string& cases) { return expand_text("{\"schema\":1,\"cases\":[" + cases + "]}"); }

  std::vector<std::string> keys(const Plan& plan) {
    std::vector<std::string> all;
    for (const PlannedCase& planned : plan.cases) all.push_back(planned.key);
    return all;
  }

  template <typename F>
  std::string refusal_of(F f) {
    std::string text = test::refusal(f);
    for (std::size_t at; (at = text.find(dir_.string() + "/")) != std::string::npos;)
      text.erase(at, dir_.string().size() + 1);
    return text;
  }
  std::string refusal(const std::string& cases) {
    return refusal_of([&] { expand_cases(cases); });
  }
  std::string refusal_of_request() {
    return refusal_of([&] { expand(); });
  }

  fs::path dir_;
  std::vector<Family> families_ = fake_families();
  PlanLimits limits_;
  PlanRequest request_;
};

}  // namespace assay
