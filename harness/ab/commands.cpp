#include "harness/ab/commands.h"

#include "harness/core/error.h"
#include "harness/core/live_line.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <chrono>

namespace assay::ab {

Result run_commands(const Commands& commands, const Options& options, const Runner& run_one) {
  LiveLine line;
  int runs = 0;
  const auto measure = [&](char name, const std::string& command, Clock::time_point deadline) -> std::vector<Figure> {
    const bool warm_up = runs < 2;
    line.draw(warm_up ? fmt::format("warming up {}", name) : fmt::format("pair {}: {}", runs / 2, name));
    ++runs;
    ProcessRun shell;
    shell.process = {.words = {"/bin/sh", "-c", command}, .variables = variables_of_launcher()};
    shell.limit_seconds = std::chrono::duration<double>(deadline - Clock::now()).count();
    const FinishedProcess done = run_one(shell);
    if (!done.ended()) return {};
    if (!done.problem.empty())
      throw Error(fmt::format("{} {}: {}\n{}", name, done.problem, one_line(command),
                              last_lines(tail_of(done.errors, 1000), 10)));
    try {
      return commands.read({done.output, done.whole, done.seconds}, name);
    } catch (const UsageError& error) {
      if (warm_up) throw;
      throw Error(error.what());  // it has printed the figure before
    }
  };
  try {
    return run([&](Clock::time_point deadline) { return measure('A', commands.a, deadline); },
               [&](Clock::time_point deadline) { return measure('B', commands.b, deadline); }, options);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", commands.verb, error.what()), error.code());
  }
}

Result run_commands(const Commands& commands, const Options& options) {
  Children children("the commands");
  return run_commands(commands, options, [&](const ProcessRun& one) { return children.run(one); });
}

}  // namespace assay::ab
