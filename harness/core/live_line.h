// What a program that takes long is doing now, on the terminal of its user.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// A line at the bottom of the terminal that is redrawn, and lines above it. Without a terminal there are only the
// latter.
class LiveLine {
 public:
  LiveLine();
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool shown() const { return shown_; }
  // Cut at the width of the terminal.
  void draw(std::string_view text);
  // A line that stays.
  void note(const std::string& text);

 private:
  void clear();

  bool shown_;
};

}  // namespace assay
