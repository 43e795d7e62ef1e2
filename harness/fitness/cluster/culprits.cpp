// Names the parts of a host that are to blame, and those whose vendor has commands.
#include "harness/fitness/cluster/cluster.h"

#include "harness/core/text.h"
#include "harness/core/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::fitness {

namespace {

std::vector<std::string> names_of(const AuditedGpu& gpu) {
  std::vector<std::string> names = {gpu.pci, gpu.uuid};
  std::erase(names, "");
  return names;
}

std::optional<VendorPart> vendor_part(std::string_view part) {
  if (part == "port" || part == "cable" || part == "pair") return VendorPart::network;
  return from_word<VendorPart>(part);
}

}  // namespace

void HostCheck::blame(std::string part, std::string device) {
  const FailedPart one{std::move(part), std::move(device)};
  if (std::ranges::find(culprits, one) == culprits.end()) culprits.push_back(one);
}

std::string text_of(const FailedPart& culprit, const AcceptedHost& host) {
  const std::string device = one_line(culprit.device, 80);
  const std::string part = culprit.part == "gpu" ? "GPU" : culprit.part == "nvlink" ? "NVLink" : culprit.part;
  if (culprit.part != "gpu" || device.empty()) return part + (device.empty() ? "" : " " + device);
  for (std::size_t i = 0; i < host.gpus.size(); ++i)
    for (const std::string& name : names_of(host.gpus[i]))
      if (device.find(name) != device.npos)
        return fmt::format("GPU {} ({})", i, one_line(host.gpus[i].pci.empty() ? name : host.gpus[i].pci, 80));
  return "GPU " + device;
}

std::vector<FailedPart> culprits_of(const AcceptedHost& host) {
  HostCheck all;
  for (const Fitness wanted : {Fitness::fail, Fitness::unsure})
    for (const std::string_view name : accept_checks)
      if (const auto check = host.checks.find(name); check != host.checks.end() && check->second.state == wanted &&
                                                     (all.culprits.empty() || wanted == Fitness::fail))
        for (const FailedPart& one : check->second.culprits) all.blame(one.part, one.device);
  return all.culprits;
}

std::map<std::string, std::vector<std::string>> suspicions_of(const AcceptedHost& host) {
  std::map<std::string, std::vector<std::string>> suspected;
  for (const std::string_view name : accept_checks)
    if (const auto check = host.checks.find(name); check != host.checks.end() && check->second.state == Fitness::unsure)
      for (const FailedPart& one : check->second.culprits) suspected[text_of(one, host)].emplace_back(name);
  return suspected;
}

void escalate(AcceptedHost& host) {
  for (const auto& [part, checks] : suspicions_of(host))
    if (checks.size() >= 2)
      host.checks[checks.back()].note(Fitness::fail,
                                      fmt::format("{} is suspected in several checks: {}", part, joined(checks)));
}

std::map<VendorPart, std::set<std::string>> vendor_parts(const AcceptedHost& host, bool has_gpus) {
  std::map<VendorPart, std::set<std::string>> parts;
  for (const auto& [name, check] : host.checks) {
    if (check.state != Fitness::fail) continue;
    for (const FailedPart& one : check.culprits)
      if (const auto part = vendor_part(one.part)) parts[*part].insert(one.part == "pair" ? "" : one.device);
    // Where nothing is to be blamed for a wrong or slow result it may be any GPU, or the way to the others.
    if (!check.culprits.empty() || name == "audit") continue;
    if (has_gpus) parts[VendorPart::gpu].insert("");
    if (name == "pairs" || name == "collectives") parts[VendorPart::network].insert("");
  }
  return parts;
}

}  // namespace assay::fitness
