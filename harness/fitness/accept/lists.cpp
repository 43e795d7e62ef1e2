#include "harness/fitness/accept/lists.h"

#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/text.h"
#include "harness/hosts/hostfile.h"
#include "harness/hosts/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

using fitness::AcceptedHost;

constexpr std::size_t max_reason = 120;  // bytes: a line of sinfo

// A line for each host follows: each HOST REASON.
constexpr std::string_view script = R"sh(#!/bin/sh
# Takes the hosts that failed in an acceptance out of service: sh drain.sh
# Gives back those that it took, once they are repaired:       sh drain.sh undo [HOST...]
# Doing either again does no harm. A host that somebody else drained, for another reason, is left alone.
case ${1-} in '' | undo) ;; *) echo "usage: sh drain.sh [undo [HOST...]]" >&2; exit 2 ;; esac
undo=${1-} bad=0
[ $# = 0 ] || shift
only=$*
left_out() { case " $only " in '  ' | *" $1 "*) return 1 ;; esac; }
if command -v scontrol >/dev/null 2>&1; then
  each() {
    if left_out "$1"; then return; fi
    node=$(scontrol -o show node "$1") || { echo "$1: $node" >&2; bad=1; return; }
    state=${node#* State=} state=${state%% *} why=
    case $node in *' Reason='*) why=${node#* Reason=} ;; esac
    case $state,$why in
      *DRAIN*,assay:*) if [ "$undo" ]; then scontrol update nodename="$1" state=resume; fi ;;
      *DRAIN*) echo "$1: left alone, drained already: $why" ;;
      *) if [ ! "$undo" ]; then scontrol update nodename="$1" state=drain reason="$2"; fi ;;
    esac || bad=1
  }
elif command -v kubectl >/dev/null 2>&1; then
  each() {
    if left_out "$1"; then return; fi
    now=$(kubectl get node "$1" -o 'jsonpath={.spec.unschedulable},{.metadata.annotations.assay/drained}') || { bad=1; return; }
    case $now in
      true,assay:*) [ ! "$undo" ] || { kubectl uncordon "$1" && kubectl annotate node "$1" assay/drained-; } ;;
      true,*) echo "$1: left alone, cordoned already" ;;
      *) [ "$undo" ] || { kubectl cordon "$1" && kubectl annotate --overwrite node "$1" assay/drained="$2"; } ;;
    esac || bad=1
  }
else
  echo "drain.sh: neither scontrol nor kubectl is here" >&2
  exit 4
fi
)sh";

std::string reason_of(const AcceptedHost& host) {
  std::vector<std::string> parts, checks;
  for (const fitness::FailedPart& one : fitness::culprits_of(host)) parts.push_back(fitness::text_of(one, host));
  for (const std::string_view name : fitness::accept_checks)
    if (const auto check = host.checks.find(name); check != host.checks.end() && check->second.state == Fitness::fail)
      checks.emplace_back(name);
  return mask_secrets(one_line(
      fmt::format("assay: {}{}failed in {}", joined(parts), parts.empty() ? "" : ", ", joined(checks)), max_reason));
}

std::vector<std::string> names_of(const fitness::Acceptance& table, Fitness state) {
  std::vector<std::string> names;
  for (const AcceptedHost& host : table.hosts)
    if (host.state() == state && is_host_name(host.host)) names.push_back(host.host);
  return names;
}

std::string list_of(const std::vector<std::string>& names) { return names.empty() ? "" : node_list(names) + "\n"; }

}  // namespace

std::string drain_script(const fitness::Acceptance& table) {
  std::string text(script);
  for (const AcceptedHost& host : table.hosts) {
    if (!is_host_name(host.host)) continue;
    if (host.state() != Fitness::fail && !host.before.empty())  // it may still be drained
      text += fmt::format("[ -z \"$undo\" ] || each {}\n", shell_word(host.host));
    if (host.state() == Fitness::fail)
      text += fmt::format("each {} {}\n", shell_word(host.host), shell_word(reason_of(host)));
  }
  return text + "exit $bad\n";
}

void write_lists(fitness::Acceptance& table, const fs::path& dir) {
  for (const AcceptedHost& host : table.hosts)
    if (!is_host_name(host.host))
      table.notes.push_back(fmt::format("{} is no host's name, and in none of the lists", in_quotes(host.host)));
  const auto passed = names_of(table, Fitness::pass);
  auto unsure = names_of(table, Fitness::unsure);
  const auto unknown = names_of(table, Fitness::unknown);
  unsure.insert(unsure.end(), unknown.begin(), unknown.end());
  replace_file(dir / unsure_file, list_of(unsure));
  replace_file(dir / failed_file, list_of(names_of(table, Fitness::fail)));
  replace_file(dir / drain_file, drain_script(table));
  // The last one: with it the others are there, too.
  replace_file(dir / passed_file, passed.empty() ? "" : fmt::format("{}\n", fmt::join(passed, "\n")));
}

void remove_lists(const fs::path& dir) {
  std::error_code none;
  for (const char* file : {passed_file, failed_file, unsure_file, drain_file}) fs::remove(dir / file, none);
}

}  // namespace assay::accept
