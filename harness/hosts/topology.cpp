#include "harness/hosts/topology.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/hosts/slurm.h"
#include "harness/process/run.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

namespace assay {

namespace {

constexpr std::size_t max_topology_bytes = std::size_t{16} << 20;
constexpr double controller_seconds = 10;  // for Slurm's controller

// The value of NAME=VALUE in a line; names are written in any case.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  for (std::size_t at = 0; at < line.size();) {
    at = std::min(line.find_first_not_of(" \t\r", at), line.size());
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const bool same = word.size() > name.size() && word[name.size()] == '=' &&
                      std::equal(name.begin(), name.end(), word.begin(),
                                 [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    if (same) return word.substr(name.size() + 1);
    at = end;
  }
  return std::nullopt;
}

}  // namespace

Leaves parse_topology(std::string_view text, const std::string& source) {
  Leaves leaves;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end), line = whole.substr(0, whole.find('#'));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos || value_of(line, "BlockSizes")) continue;
    const auto block = value_of(line, "BlockName"), name = block ? block : value_of(line, "SwitchName");
    const auto nodes = value_of(line, "Nodes");
    const bool upper = value_of(line, "Switches") || value_of(line, "Level").value_or("0") != "0";
    if (upper || (value_of(line, "AggregatedBlock") && !block)) continue;
    const std::string where = fmt::format("{}:{}: ", source, number);
    if (!name || name->empty() || !nodes)
      throw UsageError(fmt::format("{}{} is not as in SwitchName=leaf1 Nodes=n[1-8]", where, in_quotes(line)));
    for (const std::string& node : parse_node_list(*nodes, where + "Nodes"))
      if (const auto [leaf, fresh] = leaves.try_emplace(node, one_line(*name, 80)); !fresh)
        leaf->second += "+" + one_line(*name, 80);
  }
  return leaves;
}

Leaves read_topology(const std::filesystem::path& path, const std::string& flag) {
  std::string text;
  try {
    text = read_whole(path, max_topology_bytes, Pipes::read);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", flag, error.what()));
  }
  Leaves leaves = parse_topology(text, one_line(path.string()));
  if (leaves.empty())
    throw UsageError(fmt::format("{} {}: no line as in SwitchName=leaf1 Nodes=n[1-8]", flag, one_line(path.string())));
  return leaves;
}

Leaves slurm_topology(std::string& problem) {
  const std::string scontrol = find_program("scontrol");
  if (scontrol.empty()) {
    problem = "scontrol is not in PATH";
    return {};
  }
  ProcessRun run{.process = {.words = {scontrol, "show", "topology"}, .variables = variables_of_launcher()},
                 .limit_seconds = controller_seconds};
  try {
    const FinishedProcess said = run_process(run);
    problem = !said.ended()           ? "no answer within 10 s"
              : !said.problem.empty() ? said.problem
              : said.whole            ? ""
                                      : "its answer is too long";
    Leaves leaves = problem.empty() ? parse_topology(said.output, "scontrol show topology") : Leaves();
    if (problem.empty() && leaves.empty()) problem = "it lists no node";
    return leaves;
  } catch (const Error& error) {
    problem = error.what();
    return {};
  }
}

}  // namespace assay
