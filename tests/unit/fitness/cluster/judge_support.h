// Records of hosts and of worlds of hosts, which tests of their judgement share.
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "tests/support/runs.h"

#include <string>
#include <utility>
#include <vector>

namespace assay::fitness {

inline const std::vector<std::string> three_hosts = {"a", "b", "c"};
inline const std::string gemm_key = "gemm/m=64/n=64", collective_key = "collective/op=all_reduce/bytes=8";

inline Record record_on(const std::string& host, double value, const std::string& key = gemm_key,
                        const std::string& unit = "FLOP/s") {
  Record record = test::record_of(key, {test::metric("throughput", value, unit)});
  record.ranks.push_back({0, host, "AMD Zen 5", 1.0});
  record.device = "cpu";
  return record;
}

inline RunData each_host(std::vector<Record> records, const std::string& dir = "host") {
  return test::run_of(std::move(records), dir, {{"each_host", true}, {"started", "2026-01-01T00:00:00Z"}, {"id", dir}});
}

// A record of a world with one rank on each host.
inline Record world(const std::vector<std::string>& hosts, const std::string& key = collective_key) {
  Record record = test::record_of(key, {test::metric("busbw", 1e9, "B/s")});
  for (std::size_t i = 0; i < hosts.size(); ++i)
    record.ranks.push_back({static_cast<int>(i), hosts[i], "AMD Zen 5", 1.0});
  record.world_ranks = record.world_nodes = static_cast<int>(hosts.size());
  record.device = "cpu";
  return record;
}

inline Floor floor_of(double limit, bool relative = false) {
  Floor floor;
  floor.key = "gemm/*";
  floor.metric = "throughput";
  floor.unit = "FLOP/s";
  floor.limit = limit;
  floor.relative = relative;
  floor.protocol = Json::object();
  floor.source = "a test";
  return floor;
}

inline Floors floors_of(Floor floor) { return {"f.json", "f", "", {std::move(floor)}}; }

inline Check wrong(std::vector<std::string> detail) { return {"wrong_elements", false, 1.0, 0.0, std::move(detail)}; }
inline Check wrong(std::vector<Culprit> culprits) {
  return {"wrong_elements", false, 1.0, 0.0, {"x"}, std::move(culprits)};
}

inline Fitness state(const HostChecks& checks, const std::string& host) { return checks.at(host).state; }

inline std::string text(const HostCheck& check) {
  std::string all;
  for (const std::string& line : check.evidence) all += line + "\n";
  return all;
}

}  // namespace assay::fitness
