// The answer of a gate as text, as JSON, and as lines and exit codes of other systems.
#pragma once

#include "harness/core/words.h"
#include "harness/fitness/gate/gate.h"

#include <array>
#include <string>
#include <string_view>

namespace assay::gate {

enum class ExitStyle { assay, npd, nagios };
constexpr auto words(ExitStyle) { return std::to_array<std::string_view>({"assay", "npd", "nagios"}); }

// The exit code of a verdict in a style. A suspect machine takes the job.
int exit_code(Fitness verdict, ExitStyle style);
// What is printed on standard output.
std::string answer_text(const Request& request, const Answer& answer, ExitStyle style);
std::string answer_json(const Request& request, const Answer& answer);
// Says what the fuse was like before a reset.
std::string reset_text(const FuseAnswer& was);
std::string reset_json(const FuseAnswer& was);
// The same for what kept a gate from judging, in a style of another system.
std::string unknown_text(const std::string& why, ExitStyle style);
// What a gate can find.
std::string list_text(const Catalogue& catalogue);
std::string list_json(const Catalogue& catalogue);

}  // namespace assay::gate
