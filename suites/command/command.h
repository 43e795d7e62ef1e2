// A command as a case: run several times, with the figure that it prints or its time.
#pragma once

#include "harness/plan/family.h"

#include <string>
#include <vector>

namespace assay {

Family command_family();

namespace command {

// What a shell is given for these parameters: the variables, then the command.
std::string script_of(const Params& params);
// Why the text of `env` is not NAME=VALUE words; empty if it is.
std::string problem_of_variables(const std::string& text);
// The last `count` lines of an output as a terminal shows it, without empty ones at its end.
std::vector<std::string> shown_lines(const std::string& output, int count);

}  // namespace command

}  // namespace assay
