// Foreign text, made harmless for where it is shown: of files, hosts and libraries; and long lists of problems, cut.
#pragma once

#include "harness/core/error.h"

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A code point at the start of a text, and its bytes.
struct CodePoint {
  char32_t code = 0;
  std::size_t length = 0;
};
// Absent if the text, which is not empty, does not begin with well-formed UTF-8 (RFC 3629).
std::optional<CodePoint> first_code_point(std::string_view text);
// Control characters, and marks that reorder or hide the text around them. one_line() (text.h) writes them as \xNN.
bool is_harmful(char32_t code);

// Each of its lines by one_line(), cut after 4,000 bytes.
std::string plain_lines(std::string_view text);

// What an exception says to somebody who does not know the program: of a library's without the library's names.
std::string reason_of(const std::exception& error);

// The exit code for a file that cannot be written, by the reason at the end of `why`: a full disk is no mistake of the
// request, another reason is.
ExitCode code_of_unwritten(std::string_view why);

// "NAME: PROBLEM" for the first ten, then "NAME: and 90 more"; without a name, only what follows it.
std::vector<std::string> first_ten(const std::vector<std::string>& problems, const std::string& name,
                                   std::string_view between = ": ");

}  // namespace assay
