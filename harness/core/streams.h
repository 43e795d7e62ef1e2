// The standard streams: a remark that cannot be written costs no result.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace assay {

// Call this at the start of the program. It replaces a closed standard stream by a descriptor that can be neither read
// nor written, so that no file opened later takes its number and receives its output. It also makes writing to a pipe
// without a reader an error instead of a signal.
void prepare_streams();

// A whole text at once to stderr, with secrets masked, whatever becomes of it.
void say_text(std::string_view text) noexcept;
// A remark to stderr, "assay: ...\n", whatever becomes of it.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    say_text(fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::exception&) {  // no memory for it
  }
}

// To stdout, with secrets masked, by whoever has more to do: flush_stdout() tells what could not be written.
void show_text(std::string_view text) noexcept;
template <typename... Args>
void show(fmt::format_string<Args...> format, Args&&... args) {
  show_text(fmt::format(format, std::forward<Args>(args)...));
}

// The error number of the first write to stdout that failed, after writing what is left; 0 if there was none.
int flush_stdout() noexcept;

}  // namespace assay
