// The label of figures whose path no reference run has taken on hardware.
#include "harness/record/validation.h"

#include "harness/record/comparable.h"
#include "harness/record/run_dir.h"
#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Record on_gpus(int count, const std::string& algorithm = {}) {
  Record record = test::record_of("collective/op=all_reduce", {test::metric("busbw", 1e11, "B/s")});
  record.device = "cuda";
  for (int rank = 0; rank < count; ++rank) {
    record.ranks.push_back({rank, "h", "NVIDIA H200", 0.1});
    record.ranks.back().uuid = fmt::format("GPU-{}", rank);
  }
  if (!algorithm.empty()) record.choices["algorithm"] = algorithm;
  return record;
}

TEST(Validation, PathsAreWhatTheRecordShows) {
  EXPECT_THAT(hardware_paths(on_gpus(1)), ElementsAre("NVIDIA H200"));
  EXPECT_THAT(hardware_paths(on_gpus(2)), ElementsAre("NVIDIA H200", "several GPUs"));
  EXPECT_THAT(hardware_paths(on_gpus(2, "NVLS/SIMPLE")), ElementsAre("NVIDIA H200", "several GPUs", "NVLS"));
  EXPECT_THAT(hardware_paths(on_gpus(2, "symmetric/AllReduce_RSxLDMC_AGxSTMC")),
              ElementsAre("NVIDIA H200", "several GPUs", "NVLS"));
  Record record = on_gpus(2, "RING/LL");
  record.choices["transport"] = "NET/IB/GDRDMA, NVLS, P2P/CUMEM";  // set up, perhaps by an earlier case
  EXPECT_THAT(hardware_paths(record), ElementsAre("NVIDIA H200", "several GPUs", "InfiniBand"));
  record.choices.erase("algorithm");  // as in training, which has many calls
  EXPECT_THAT(hardware_paths(record), ElementsAre("NVIDIA H200", "several GPUs", "NVLS", "InfiniBand"));
  Record pairs = on_gpus(1);
  pairs.conditions["gpus"] = "8";
  pairs.telemetry["gpu_nvlink_sent"] = {"B/s", {0, 1}, {std::nullopt, 4e11}};
  EXPECT_THAT(hardware_paths(pairs), ElementsAre("NVIDIA H200", "several GPUs", "NVLink"));
  pairs.telemetry["gpu_nvlink_sent"].values = {0.0, 0.0};
  EXPECT_THAT(hardware_paths(pairs), ElementsAre("NVIDIA H200", "several GPUs"));
}

TEST(Validation, ARecordOfCpusOrWithoutFiguresTakesNone) {
  Record record = on_gpus(1);
  record.metrics.clear();
  EXPECT_THAT(hardware_paths(record), IsEmpty());
  record = on_gpus(1);
  record.device = "cpu";
  EXPECT_THAT(hardware_paths(record), IsEmpty());
  label_unvalidated(record, {});
  EXPECT_THAT(record.labels, IsEmpty());
}

TEST(Validation, TheLabelListsWhatIsLeftAndGoesWithTheLast) {
  Record record = on_gpus(2, "NVLS/SIMPLE");
  label_unvalidated(record, {"NVIDIA H100 80GB HBM3"});
  EXPECT_EQ(record.labels.at(unvalidated_label), "NVIDIA H200, several GPUs, NVLS");
  lift_label(record, {"NVIDIA H200", "several GPUs"});
  EXPECT_EQ(record.labels.at(unvalidated_label), "NVLS");
  lift_label(record, {"NVLS"});
  EXPECT_FALSE(record.labels.contains(unvalidated_label));
}

TEST(Validation, TheLabelLeavesRecordsComparable) {
  const Record own = on_gpus(1);
  Record other = own;
  label_unvalidated(other, {});
  ASSERT_TRUE(other.labels.contains(unvalidated_label));
  EXPECT_THAT(differences(own, other, {.sides = true}), IsEmpty());
  EXPECT_TRUE(other.comparable);
}

TEST(Validation, OnlyMeasurementsOfReferenceRunsCount) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(validated_paths(folder.path() / "absent"), IsEmpty());
  const auto write = [&](const char* name, std::vector<Record> records) {
    RunWriter writer = RunWriter::create(folder.path() / name, {{"schema", record_schema}});
    for (Record& record : records) writer.append(std::move(record));
  };
  Record failed = on_gpus(2, "NVLS/SIMPLE"), emulated = on_gpus(2);
  failed.status = Status::failed;
  emulated.comparable = false;
  emulated.key += "/inplace=true";
  write("bad", {failed, emulated});
  EXPECT_THAT(validated_paths(folder.path()), IsEmpty());
  write("good", {on_gpus(1)});
  EXPECT_THAT(validated_paths(folder.path()), UnorderedElementsAre("NVIDIA H200"));
}

}  // namespace
}  // namespace assay
