// The cost of an hour on an owned machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// Inputs for one owned node. Absent inputs are not counted, and the figure names them.
struct Ownership {
  std::string name;
  // The machines it describes: an instance type, hosts by name, or `gpus` of the kind `gpu`.
  std::string instance_type;
  std::vector<std::string> hosts;
  std::string gpu;
  std::optional<double> gpus;

  double capex = 0;     // USD per node
  double years = 0;     // years of use
  double power_kw = 0;  // power of the node under load
  double pue = 1;       // power usage effectiveness: power of the site over that of its machines
  double usd_per_kwh = 0;
  std::optional<double> residual;         // fraction of capex that the node is worth at the end; absent: none
  std::optional<double> cost_of_capital;  // fraction of capex per year
  std::optional<double> colocation;       // USD per hour
  std::optional<double> staff;            // USD per hour
  std::optional<double> utilisation;      // fraction of hours with useful work; absent: all

  std::string source;
  std::string date;
  std::string note;
  std::string place;
};

// USD per hour of useful work of the whole node:
//   ((capex (1 - residual) / years + capex cost_of_capital) / 8760 + power_kw pue usd_per_kwh + colocation + staff)
//   / utilisation
// Straight-line depreciation, capital on the full price, energy at full load around the clock. Divided by the node's
// GPUs it is the usual "total cost of ownership per useful GPU-hour".
double usd_per_useful_hour(const Ownership& owned);

// Absent inputs for people: "cost of capital, staff"; empty if all are given.
std::string not_counted(const Ownership& owned);

}  // namespace assay::report
