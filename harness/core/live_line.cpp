#include "harness/core/live_line.h"

#include "harness/core/streams.h"

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
  if (shown_) say("\r\033[K");
}

void LiveLine::draw(std::string text) {
  if (!shown_) return;
  if (const std::size_t width = terminal_width(); text.size() >= width) text.resize(width - 1);
  clear();
  say_text(text);
}

void LiveLine::note(const std::string& text) {
  clear();
  say("{}\n", text);
}

}  // namespace assay
