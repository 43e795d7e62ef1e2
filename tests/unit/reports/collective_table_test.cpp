// The table in nccl-tests' form, column by column.
#include "reports/summary/collective_table.h"
#include "tests/support/runs.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::report {
namespace {

Record record_of(const char* bytes, bool in_place, double seconds, std::optional<double> busbw, double wrong) {
  Record record;
  record.family = "collective";
  record.params = {{"op", "all_reduce"},
                   {"bytes", std::stoll(bytes)},
                   {"dtype", "f32"},
                   {"inplace", in_place},
                   {"batching", "batched"}};
  record.world_ranks = 2;
  record.labels = {{"count", std::to_string(std::stoll(bytes) / 4)},
                   {"bytes_used", bytes},
                   {"redop", "sum"},
                   {"root", "-1"},
                   {"implementation", "Open MPI 4.1.4, ob1, vader"}};
  record.metrics = {test::metric("busbw", busbw, "B/s"), test::metric("algbw", std::stod(bytes) / seconds, "B/s"),
                    test::seconds("latency", seconds)};
  record.checks = {{"wrong_elements", wrong == 0, wrong, 0, {}}};
  return record;
}

std::vector<const Record*> pointers(const std::vector<Record>& records) {
  std::vector<const Record*> all;
  for (const Record& record : records) all.push_back(&record);
  return all;
}

TEST(CollectiveTable, PairsOutOfPlaceWithInPlaceAndOrdersBySize) {
  const std::vector<Record> records{record_of("1048576", false, 100e-6, 10.49e9, 0),
                                    record_of("8", false, 1.25e-6, 6.4e6, 0),
                                    record_of("8", true, 1.5e-6, std::nullopt, 3)};
  EXPECT_EQ(collective_table(pointers(records)),
            R"(# all_reduce, 2 ranks, batched, Open MPI 4.1.4, ob1, vader
#                                                       out-of-place                        in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1     1.25    0.01    0.01      0     1.50    0.01     N/A      3
     1048576        262144     float     sum      -1   100.00   10.49   10.49      0      N/A     N/A     N/A    N/A
# Out of bounds values : 3 FAILED
# Avg bus bandwidth    : 5.2482
)");
}

TEST(CollectiveTable, BuffersAndNvlsHaveTablesOfTheirOwn) {
  std::vector<Record> records(3, record_of("8", false, 1e-6, 1e6, 0));
  for (Record& record : records) record.params["nvls"] = "auto", record.params["buffers"] = "plain";
  records[1].params["buffers"] = "symmetric";
  records[2].params["nvls"] = "off";
  const std::string text = collective_table(pointers(records));
  EXPECT_NE(text.find("# all_reduce, 2 ranks, batched, Open MPI"), text.npos) << text;
  EXPECT_NE(text.find("# all_reduce, 2 ranks, batched, symmetric buffers, Open MPI"), text.npos) << text;
  EXPECT_NE(text.find("# all_reduce, 2 ranks, batched, NVLS off, Open MPI"), text.npos) << text;
}

TEST(CollectiveTable, LeavesOutOtherFamiliesSkipsAndPartsOfTheWorld) {
  Record gemm = record_of("8", false, 1e-6, 1e6, 0);
  gemm.family = "gemm";
  Record skipped = record_of("8", false, 1e-6, 1e6, 0);
  skipped.metrics.clear();
  Record rails = record_of("8", false, 1e-6, 1e6, 0);
  rails.groups = {{0, {0, 1}, 1e6}};
  const std::vector<Record> records{gemm, skipped, rails};
  EXPECT_EQ(collective_table(pointers(records)), "");
}

}  // namespace
}  // namespace assay::report
