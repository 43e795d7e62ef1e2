// Prometheus' text format 0.0.4, for node_exporter's textfile collector, which refuses timestamps on samples.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

// {host="node1"}: labels without a value are left out, as Prometheus takes both for the same.
std::string prometheus_labels(const std::vector<std::pair<const char*, std::string>>& labels);

// Values by name and labels: a repeated series would make the whole file invalid, so the newest counts.
class PrometheusGauges {
 public:
  void set(const std::string& name, const std::string& labels, double value, const char* help);
  std::string text() const;

 private:
  std::map<std::string, std::pair<const char*, std::map<std::string, double>>> all_;
};

}  // namespace assay::report
