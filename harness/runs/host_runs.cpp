#include "harness/runs/host_runs.h"

#include "harness/json/json.h"
#include "harness/record/content_hash.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace assay {

namespace {

// Hosts in run.json, then those named only by records.
std::vector<std::string> hosts_of(const RunData& run, std::map<std::string, const Json*>& listed) {
  std::vector<std::string> names;
  if (const Json& hosts = member(run.run, "/hosts"); hosts.is_array())
    for (const Json& host : hosts)
      if (const std::string name = text_member(host, "/name"); !name.empty() && listed.try_emplace(name, &host).second)
        names.push_back(name);
  for (const Record& record : run.records)
    for (const std::string& name : record.identity().hosts)
      if (listed.try_emplace(name, nullptr).second) names.push_back(name);
  return names;
}

Json run_of_host(const Json& whole, const std::string& name, const Json* host) {
  Json run = whole;
  run["environment"] = host ? member(*host, "/environment") : Json::object();
  if (!run["environment"].is_object()) run["environment"] = Json::object();
  run["environment"]["hostnames"] = Json::array({name});
  run["findings"] = host ? member(*host, "/findings") : Json::array();
  return run;
}

}  // namespace

bool ran_on_each_host(const RunData& run) {
  const Json& each_host = member(run.run, "/each_host");
  return each_host.is_boolean() && each_host.get<bool>();
}

std::vector<RunData> split_hosts(RunData run) {
  std::vector<RunData> parts;
  std::map<std::string, const Json*> listed;
  std::vector<std::string> names;
  if (ran_on_each_host(run)) names = hosts_of(run, listed);
  if (names.empty()) {
    parts.push_back(std::move(run));
    return parts;
  }
  Json shared = run.run;
  shared.erase("hosts");
  std::map<std::string, std::size_t> places;
  for (const std::string& name : names) {
    places[name] = parts.size();
    RunData& part = parts.emplace_back();
    part.dir = run.dir;
    part.run = run_of_host(shared, name, listed.at(name));
    if (run.content) part.content = hash64(name, *run.content);
  }
  parts.front().problems = std::move(run.problems);
  for (std::size_t i = 0; i < run.records.size(); ++i) {
    const std::vector<std::string> hosts = run.records[i].identity().hosts;
    RunData& part = parts[hosts.empty() ? 0 : places.at(hosts.front())];
    part.lines.push_back(i < run.lines.size() ? run.lines[i] : static_cast<int>(i) + 1);
    part.records.push_back(std::move(run.records[i]));
  }
  return parts;
}

}  // namespace assay
