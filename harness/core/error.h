// Errors, and the exit codes they become.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace assay {

// The exit codes of every subcommand.
enum class ExitCode : int { ok = 0, failed = 1, usage = 2, no_data = 3, broken = 4 };

// The more severe of two exit codes: usage > failed > broken > no_data > ok.
ExitCode worst(ExitCode a, ExitCode b);

// Something broke: the tool, its environment, or a case (exit code 4).
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::broken);
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The request itself is wrong: bad flag, file, plan or path; nothing ran (exit code 2).
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message, ExitCode::usage) {}
};

namespace detail {
[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& message);
}

// Throws Error with the expression, the location and a formatted message if `condition` is false.
#define ASSAY_CHECK(condition, ...)                                                                 \
  do {                                                                                              \
    if (!(condition)) [[unlikely]]                                                                  \
      ::assay::detail::check_failed(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

}  // namespace assay
