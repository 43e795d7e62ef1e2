#include "harness/core/error.h"

#include <cstring>

namespace assay {

namespace {

int severity(ExitCode code) {
  switch (code) {
    case ExitCode::usage: return 4;
    case ExitCode::failed: return 3;
    case ExitCode::broken: return 2;
    case ExitCode::no_data: return 1;
    case ExitCode::ok: break;
  }
  return 0;
}

}  // namespace

ExitCode worst(ExitCode a, ExitCode b) { return severity(a) >= severity(b) ? a : b; }

Error::Error(const std::string& message, ExitCode code) : std::runtime_error(message), code_(code) {}

namespace detail {

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  const char* slash = std::strrchr(file, '/');
  const char* base = slash ? slash + 1 : file;
  if (message.empty()) throw Error(fmt::format("{} does not hold ({}:{})", expression, base, line));
  throw Error(fmt::format("{} ({} does not hold, {}:{})", message, expression, base, line));
}

}  // namespace detail
}  // namespace assay
