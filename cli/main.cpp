// The program's entry.
#include "cli/command.h"

int main(int argc, char** argv) { return assay::cli::run_command_line(argc, argv); }
