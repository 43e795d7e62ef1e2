#include "cli/command_sides.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/process/run.h"
#include "harness/run/progress.h"

#include <fmt/format.h>

namespace assay::cli {

namespace {

// Measures the commands for ab::run().
class CommandSides {
 public:
  explicit CommandSides(const FigureReader& read) : read_(read) {}

  ab::Side side(char name, const std::string& command) {
    return [this, name, command](Clock::time_point deadline) { return measure(name, command, deadline); };
  }

 private:
  std::vector<ab::Figure> measure(char name, const std::string& command, Clock::time_point deadline) {
    const int run = runs_++;
    line_.draw(run < 2 ? fmt::format("warming up {}", name) : fmt::format("pair {}: {}", run / 2, name));
    ProcessRun shell;
    shell.process = {.words = {"/bin/sh", "-c", command}, .variables = variables_of_launcher()};
    shell.limit_seconds = std::chrono::duration<double>(deadline - Clock::now()).count();
    const FinishedProcess done = commands_.run(shell);
    if (!done.ended()) return {};
    if (!done.problem.empty())
      throw Error(fmt::format("{} {}: {}\n{}", name, done.problem, one_line(command),
                              last_lines(tail_of(done.errors, 1000), 10)));
    try {
      return read_({done.output, done.whole, done.seconds}, name);
    } catch (const UsageError& error) {
      if (run < 2) throw;
      throw Error(error.what());  // it has printed the figure before
    }
  }

  Children commands_{"the commands"};
  LiveLine line_;
  const FigureReader& read_;
  int runs_ = 0;
};

}  // namespace

ab::Result compare_commands(const std::string& verb, const std::string& a, const std::string& b,
                            const FigureReader& read, const ab::Options& options) {
  try {
    CommandSides sides(read);
    return ab::run(sides.side('A', a), sides.side('B', b), options);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", verb, error.what()), error.code());
  }
}

}  // namespace assay::cli
