// What an hour of an owned machine costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// Inputs of one owned node. Those that are absent are not counted, and the figure says so.
struct Ownership {
  std::string name;
  // The machines it stands for: an instance type, hosts by name, or `gpus` of the kind `gpu`.
  std::string instance_type;
  std::vector<std::string> hosts;
  std::string gpu;
  std::optional<double> gpus;

  double capex = 0;                       // USD a node
  double years = 0;                       // of use
  double power_kw = 0;                    // of the node under load
  double pue = 1;                         // power usage effectiveness: of the site over that of its machines
  double usd_per_kwh = 0;                 //
  std::optional<double> residual;         // share of capex that the node is worth in the end; absent: nothing
  std::optional<double> cost_of_capital;  // share of capex a year
  std::optional<double> colocation;       // USD an hour
  std::optional<double> staff;            // USD an hour
  std::optional<double> utilisation;      // share of hours in which the node does useful work; absent: all

  std::string source;
  std::string date;
  std::string note;
  std::string place;
};

// USD an hour of useful work of the whole node:
//   ((capex (1 - residual) / years + capex cost_of_capital) / 8760 + power_kw pue usd_per_kwh + colocation + staff)
//   / utilisation
// Straight-line depreciation, capital on the full price, energy at full load around the clock. Divided by the GPUs of
// the node it is the usual "total cost of ownership a useful GPU-hour".
double usd_per_useful_hour(const Ownership& owned);

// "cost of capital, staff": inputs that are absent, for people; empty when all are given.
std::string not_counted(const Ownership& owned);

}  // namespace assay::report
