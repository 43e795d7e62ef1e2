#include "harness/core/live_line.h"

#include "harness/core/streams.h"
#include "harness/core/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>

namespace assay {

namespace {

// Columns of the terminal on stderr; 80 if it has none.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

LiveLine::LiveLine() : shown_(isatty(STDERR_FILENO) == 1) {}

void LiveLine::clear() {
  constexpr std::string_view erase = "\r\033[K";
  if (shown_ && ::write(STDERR_FILENO, erase.data(), erase.size()) < 0) shown_ = false;
}

void LiveLine::draw(std::string_view text) {
  if (!shown_) return;
  clear();
  say_text(one_line(text, terminal_width() - 4));  // and "..."
}

void LiveLine::note(const std::string& text) {
  clear();
  say("{}\n", text);
}

}  // namespace assay
