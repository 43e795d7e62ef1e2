#include "tests/support/devices.h"

#include "harness/core/error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

namespace assay::test {

namespace {

struct Held {
  std::shared_ptr<Device> device;
  std::string why_not;
  std::set<std::string> skipped;  // tests
};

std::map<DeviceKind, Held>& held() {
  static auto& all = *new std::map<DeviceKind, Held>;  // never destroyed: devices outlive the tests
  return all;
}

class Summary final : public testing::Environment {
 public:
  void TearDown() override {
    for (const auto& [kind, each] : held())
      if (!each.skipped.empty())
        std::cout << fmt::format("{}: {} tests skipped: {}\n", kind == DeviceKind::cuda ? "gpu" : name_of(kind),
                                 each.skipped.size(), each.why_not);
  }
};

[[maybe_unused]] const auto* const summary = testing::AddGlobalTestEnvironment(new Summary);

}  // namespace

std::shared_ptr<Device> device_of(DeviceKind kind, std::string& why_not) {
  const auto [at, first] = held().try_emplace(kind);
  Held& own = at->second;
  if (first) {
    try {
      own.device = make_device(kind, 0);
    } catch (const Error& error) {
      own.why_not = error.what();
    }
  }
  if (!own.device) {
    why_not = own.why_not;
    if (const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info())
      own.skipped.insert(fmt::format("{}.{}", test->test_suite_name(), test->name()));
  }
  return own.device;
}

}  // namespace assay::test
