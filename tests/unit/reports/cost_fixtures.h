// Runs and price files made by hand, for the tests of costs.
#pragma once

#include "reports/cost/cost.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

// A folder of the test's own.
class Folder {
 public:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }
  PriceFile read(const std::string& name, const std::string& text) const { return read_price_file(write(name, text)); }
  // What is wrong with a file, in the message's words.
  std::string refusal(const std::string& name, const std::string& text) const {
    return test::refusal<std::exception>([&] { read(name, text); });
  }

 private:
  test::TemporaryFolder folder_;
};

inline Record training(std::vector<Metric> metrics) {
  Record record = test::record_of("transformer/model=gpt2-124m/mode=throughput/precision=bf16", std::move(metrics));
  record.params = {{"model", "gpt2-124m"}, {"precision", "bf16"}};
  record.started = "2026-01-10T00:00:00Z";
  return record;
}

// A run of one host of an instance type.
inline RunData run_on(const std::string& type, std::vector<Record> records, const std::string& host = "n1",
                      const std::string& region = "") {
  return test::run_of(std::move(records), "runs/" + host,
                      {{"started", "2026-01-10T00:00:00Z"},
                       {"labels", {{"instance_type", type}, {"region", region}}},
                       {"environment", {{"cpu", {{"name", "AMD Zen 4"}}}, {"hostnames", {host}}}}});
}

inline void add_gpus(RunData& run, int count, const std::string& name) {
  Json gpus = Json::array();
  for (int i = 0; i < count; ++i) gpus.push_back({{"name", name}});
  run.run["environment"]["gpus"] = gpus;
}

// One price file with one price of "box" in force at the runs' start.
inline PriceSource box_price(double usd) {
  Price price;
  price.instance_type = "box";
  price.on_demand = usd;
  price.source = "a quote";
  price.date = "2026-01-01";
  PriceFile file;
  file.name = "own.json";
  file.prices = {price};
  PriceSource source;
  source.files = {file};
  return source;
}

}  // namespace assay::report
