// Arrays, sides and comparison of the parity tests, and a summary of skipped tests.
#include "tests/parity/frame.h"

#include "harness/core/error.h"
#include "harness/device/cpu/cpu_device.h"
#include "harness/device/cpu/team.h"
#include "tests/oracle/oracle.h"
#include "tests/oracle/reference_op.h"
#include "tests/support/devices.h"
#include "workloads/ops/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <utility>

namespace assay::ops::parity {

Tensor::Tensor(DType dtype, std::int64_t count)
    : dtype_(dtype), count_(count), bytes_(static_cast<std::size_t>(count) * size_of(dtype)) {}

Tensor Tensor::normal(DType dtype, std::int64_t count, std::string_view purpose, double deviation, double mean) {
  Tensor tensor(dtype, count);
  fill_random(tensor.data(), dtype, 0, count, Rng(7, purpose));
  if (deviation != 1 || mean != 0)
    for (std::int64_t i = 0; i < count; ++i) tensor.set(i, tensor.at(i) * deviation + mean);
  return tensor;
}

Tensor Tensor::integers(const std::vector<std::int32_t>& values) {
  Tensor tensor(DType::i32, static_cast<std::int64_t>(values.size()));
  std::memcpy(tensor.data(), values.data(), tensor.bytes());
  return tensor;
}

Tensor Tensor::integers(std::int64_t count, std::int64_t bound, std::string_view purpose) {
  const Rng rng(7, purpose);
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(bound))));
  return integers(values);
}

double Tensor::at(std::int64_t i) const {
  if (dtype_ == DType::i32) return static_cast<const std::int32_t*>(data())[i];
  if (dtype_ == DType::i64) return static_cast<double>(static_cast<const std::int64_t*>(data())[i]);
  return reference::Array(data(), dtype_)[i];
}

void Tensor::set(std::int64_t i, double value) { reference::Array(data(), dtype_).set(i, value); }

Side::Side(std::shared_ptr<Device> device, std::shared_ptr<Backend> backend)
    : device_(std::move(device)), backend_(std::move(backend)), stream_(device_->make_stream()) {}

void* Side::put(const Tensor& tensor) {
  void* data = space(tensor.bytes());
  device_->copy(data, tensor.data(), tensor.bytes(), *stream_);
  stream_->synchronize();
  return data;
}

void* Side::space(std::size_t bytes) {
  const std::vector<std::byte> nans(std::max<std::size_t>(bytes, 1), std::byte{0xff});
  buffers_.push_back(device_->allocate(nans.size()));
  device_->copy(buffers_.back().data(), nans.data(), nans.size(), *stream_);
  stream_->synchronize();
  return buffers_.back().data();
}

void Side::expect_untouched(const void* guard, const std::string& implementation) {
  std::vector<std::byte> found(guard_bytes);
  device_->copy(found.data(), guard, found.size(), *stream_);
  stream_->synchronize();
  const auto written = std::count_if(found.begin(), found.end(), [](std::byte b) { return b != std::byte{0xff}; });
  EXPECT_EQ(written, 0) << implementation << " writes past its workspace";
}

Tensor Side::get(const void* data, DType dtype, std::int64_t count) {
  Tensor tensor(dtype, count);
  device_->copy(tensor.data(), data, tensor.bytes(), *stream_);
  stream_->synchronize();
  return tensor;
}

Side oracle_side() { return {cpu::make_cpu_device(), make_reference_backend()}; }

Made<Side> device_side(DeviceKind kind) {
  std::string why_not;
  const std::shared_ptr<Device> device = test::device_of(kind, why_not);
  if (!device) return Made<Side>::no(why_not);
  if (kind == DeviceKind::cpu) {
    static const cpu::Team team(cpu::rank_cores());
    team.use();
  }
  return std::make_unique<Side>(device, backend_for(*device));
}

namespace {

// The output whose error as a vector was closest to its limit, and the ratio of error to limit.
std::pair<double, std::string>& closest() {
  static std::pair<double, std::string> value;
  return value;
}

}  // namespace

void expect_close(const Output& got, const Output& want, const std::string& implementation) {
  SCOPED_TRACE(implementation + ": " + want.name);
  ASSERT_EQ(got.value.count(), want.value.count());
  const std::int64_t count = want.value.count();
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (std::isfinite(want.value.at(i))) norm += std::pow(want.value.at(i), 2);
  const double rms = std::sqrt(norm / static_cast<double>(count));
  const Tolerance& tolerance = want.tolerance;
  int wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = got.value.at(i), y = want.value.at(i);
    if (x == y) continue;                          // also infinities
    if (std::isnan(x) && std::isnan(y)) continue;  // ops must propagate NaN
    error += (x - y) * (x - y);
    // The oracle rounds to the output's type too, so values near a rounding boundary may differ by a whole ulp.
    const double limit =
        2 * tolerance.element_relative * std::abs(y) + tolerance.element_scale * rms + 8 * tolerance.absolute;
    if (!(std::abs(x - y) <= limit) && ++wrong < 4)
      ADD_FAILURE() << "element " << i << " of " << count << " is " << x << ", not " << y;
  }
  EXPECT_EQ(wrong, 0);
  const double limit =
      tolerance.relative_l2 * std::sqrt(norm) + tolerance.absolute * std::sqrt(static_cast<double>(count));
  EXPECT_LE(std::sqrt(error), limit) << "as a vector, of norm " << std::sqrt(norm);
  if (limit > 0) closest() = std::max(closest(), {std::sqrt(error) / limit, implementation + ": " + want.name});
}

void expect_same_bits(const Outputs& first, const Outputs& second, const std::string& implementation) {
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(std::memcmp(first[i].value.data(), second[i].value.data(), first[i].value.bytes()), 0)
        << implementation << ": " << first[i].name << " differs between runs";
}

namespace {

// Prints how many cases were skipped, by reason, and how close the others came to failing.
class Summary final : public testing::Environment {
 public:
  void TearDown() override {
    std::map<std::string, int> reasons;
    int run = 0, skipped = 0;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite = *all.GetTestSuite(s);
      for (int t = 0; t < suite.total_test_count(); ++t) {
        const testing::TestInfo& test = *suite.GetTestInfo(t);
        run += test.should_run();
        if (!test.result()->Skipped()) continue;
        ++skipped;
        const std::string name = suite.name();
        ++reasons[name.substr(name.find('/') + 1) + ": " + test.result()->GetTestPartResult(0).message()];
      }
    }
    std::cout << skipped << " of " << run << " cases skipped\n";
    for (const auto& [reason, count] : reasons) std::cout << "  " << count << " x " << reason << '\n';
    std::cout << fmt::format("the largest error is {:.2f} of its limit: {}\n", closest().first, closest().second);
  }
};

[[maybe_unused]] const auto* const summary = testing::AddGlobalTestEnvironment(new Summary);

}  // namespace

}  // namespace assay::ops::parity
