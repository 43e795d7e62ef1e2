#include "harness/fitness/accept/again.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/fitness/accept/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::accept {

namespace fs = std::filesystem;

using fitness::AcceptedHost;

namespace {

constexpr std::size_t max_partners = 7;  // enough for a median, and for every pair to have other partners

// The lines of checks that failed, or of which nobody was sure.
std::vector<std::string> failures_of(const AcceptedHost& host) {
  std::vector<std::string> lines = host.before;
  for (const std::string_view name : fitness::accept_checks)
    if (const auto check = host.checks.find(name);
        check != host.checks.end() && (check->second.state == Fitness::fail || check->second.state == Fitness::unsure))
      for (const std::string& line : check->second.evidence) lines.push_back(fmt::format("{}: {}", name, line));
  return lines;
}

}  // namespace

void add_again(Request& request, const std::string& host, const fs::path& dir) {
  const std::vector<std::string>& known = request.state.hosts;
  if (std::ranges::find(known, host) == known.end())
    throw UsageError(fmt::format("accept --again: {} is not among the {} hosts of {}{}", in_quotes(host), known.size(),
                                 dir.string(), suggestion(host, known)));
  Again one{host, {}, {host}};
  for (const std::string& name : passed_hosts(dir, "--resume"))
    if (name != host && one.hosts.size() <= max_partners) one.hosts.push_back(name);
  one.dir = fmt::format("again-{}", request.state.again.size() + 1);
  request.state.again.push_back(std::move(one));
  write_state(dir, request.state);
}

AgainResult run_again(const Request& request, Trials& trials, const fs::path& dir, std::vector<AcceptedHost>& hosts,
                      fitness::AuditedFleet& audit) {
  AgainResult result;
  for (const Again& one : request.state.again) {
    Request part = request;
    const fs::path folder = dir / one.dir;
    std::error_code none;
    if (fs::exists(folder / state_file, none)) {
      part.state = read_state(folder);
    } else {
      part.state.hosts = one.hosts;
      part.state.stages.clear(), part.state.again.clear();
      part.state.audited = false;
      fs::create_directories(folder);
      write_state(folder, part.state);
    }
    say("assay: {} again, with {}\n", one.host, plural(static_cast<std::int64_t>(one.hosts.size()) - 1, "partner"));
    Stages stages(part, trials, folder);
    result.finished = stages.run();
    result.broke = result.broke || stages.broke();
    if (!result.finished) break;
    for (AcceptedHost& found : stages.hosts()) {
      fitness::escalate(found);
      if (found.host != one.host) {
        if (found.state() == Fitness::fail || found.state() == Fitness::unsure)
          result.notes.push_back(fmt::format("{}, a partner of {} in {}, did not pass there: --again {} judges it",
                                             found.host, one.host, one.dir, found.host));
        continue;
      }
      AcceptedHost& kept = *std::ranges::find(hosts, one.host, &AcceptedHost::host);
      found.before = failures_of(kept);
      kept = std::move(found);
    }
    const auto same = [&](const auto& each) { return each.host == one.host; };
    const auto answer = std::ranges::find_if(stages.audit().hosts, same);
    if (const auto old = std::ranges::find_if(audit.hosts, same);
        answer != stages.audit().hosts.end() && old != audit.hosts.end())
      *old = *answer;
  }
  return result;
}

}  // namespace assay::accept
