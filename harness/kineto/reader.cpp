#include "harness/kineto/reader.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/kineto/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace assay::kineto {
namespace {

// The text that the parser walks through, a part of it at a time.
struct Input {
  Source more;
  const std::string& file;
  std::string part = {};
  std::size_t at = 0, read = 0;
  std::size_t event_at = 0;  // `read` at the last event
  bool done = false;

  void next() {
    if (++at >= part.size()) fill();
  }
  void fill() {
    // One event of a trace is far shorter; a text without end must not fill the memory.
    constexpr std::size_t max_event_bytes = 64u << 20;
    part.clear(), at = 0;
    while (part.empty() && !done) done = !more(part) && part.empty();
    read += part.size();
    if (read - event_at > max_event_bytes + part.size())
      throw UsageError(fmt::format("{}: is no trace of the PyTorch profiler: 64 MiB without an event", file));
  }
};

class Place {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Place() = default;
  explicit Place(Input& input) : input_(&input) {}
  char operator*() const { return input_->part[input_->at]; }
  Place& operator++() {
    input_->next();
    return *this;
  }
  Place operator++(int) { return ++*this; }  // of an input iterator only the newest copy is valid
  friend bool operator==(const Place& a, const Place& b) { return a.ended() == b.ended(); }

 private:
  bool ended() const { return !input_ || input_->done; }
  Input* input_ = nullptr;
};

// Follows the document by its depth: members of the whole, of an event and of its `args`.
class Handler {
 public:
  static constexpr std::int64_t max_ranks = 1'000'000;

  Handler(Input& input, Events& events) : input_(input), events_(events) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t value) { return number(static_cast<double>(value), value); }
  bool number_unsigned(std::uint64_t value) {
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string&) {
    return number(value, std::llround(std::clamp(value, -9e18, 9e18)));
  }
  bool binary(Json::binary_t&) { return true; }

  bool string(std::string& text) {
    Event& event = events_.event;
    if (in_event()) {
      if (depth_ == 4) {
        if (key_ == "Collective name") event.collective = text;
        if (key_ == "Process Group Name") event.group = text;
      } else if (depth_ == 5 && key_ == "Input type") {
        event.inputs.add_type(text);
      } else if (depth_ == 5 && key_ == "Concrete Inputs") {
        event.inputs.add_value(text);
      } else if (depth_ > 4) {
        // another list or object inside of `args`
      } else if (key_ == "name") {
        event.name.swap(text);
      } else if (key_ == "cat") {
        event.category = category_from(text);
      } else if (key_ == "ph") {
        event.complete = text == "X";
      }
    } else if (depth_ == 1 && top_ == "host_name") {
      events_.trace.host = text;
    } else if (depth_ == 2 && top_ == "distributedInfo" && key_ == "backend") {
      events_.trace.backend = text;
    } else if (depth_ == 3 && top_ == "deviceProperties" && key_ == "name") {
      events_.devices.push_back(text);
    }
    return true;
  }

  bool start_object(std::size_t) {
    ++depth_;
    if (depth_ == 1) root_ = true;
    if (depth_ == 3 && events_.seen) events_.event.clear();
    return true;
  }
  bool key(std::string& name) {
    key_.swap(name);
    if (depth_ != 1) return true;
    top_ = key_;
    in_events_ = false;
    return true;
  }
  bool end_object() {
    if (in_event() && depth_ == 3) {
      input_.event_at = input_.read;
      events_.take();
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    ++depth_;
    if (depth_ == 2 && root_ && top_ == "traceEvents") in_events_ = events_.seen = true;
    if (depth_ == 6 && in_events_ && key_ == "Input Dims") events_.event.inputs.add_shape();
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const std::exception& error) {
    const std::string what = error.what();
    constexpr std::string_view mark = "parse error at ";
    const std::size_t at = what.find(mark);
    const std::string place = at == what.npos ? what : what.substr(at + mark.size());
    if (input_.read == 0) throw UsageError(fmt::format("{}: is empty", input_.file));
    if (input_.done && events_.seen)
      throw UsageError(fmt::format("{}: was cut off at {}, after {} whole events", input_.file,
                                   place.substr(0, place.find(':')), events_.count));
    throw UsageError(fmt::format("{}: {}", input_.file, one_line(place)));
  }

 private:
  bool in_event() const { return in_events_ && depth_ >= 3; }

  bool number(double value, std::int64_t whole) {
    Event& event = events_.event;
    if (in_event()) {
      if (depth_ == 4) {
        if (key_ == "Seq") event.sequence = whole;
        if (key_ == "device") event.device = whole;
        if (key_ == "External id" || key_ == "external id") event.external = whole;
        if (key_ == "correlation") event.correlation = whole;
      } else if (depth_ == 6 && key_ == "Input Dims") {
        event.inputs.add_size(whole);
      } else if (depth_ > 4) {
        // as above
      } else if (key_ == "ts") {
        event.start_us = value;
      } else if (key_ == "dur") {
        event.duration_us = value;
      } else if (key_ == "tid") {
        event.thread = whole;
      }
    } else if (depth_ == 1 && top_ == "baseTimeNanoseconds") {
      events_.trace.base_ns = whole;
    } else if (depth_ == 2 && top_ == "distributedInfo") {
      if (key_ == "rank") events_.trace.rank = static_cast<int>(std::clamp<std::int64_t>(whole, 0, max_ranks));
      if (key_ == "world_size") events_.trace.world = static_cast<int>(std::clamp<std::int64_t>(whole, 0, max_ranks));
    }
    return true;
  }

  Input& input_;
  Events& events_;
  std::string key_, top_;
  int depth_ = 0;
  bool root_ = false, in_events_ = false;
};

}  // namespace

RankTrace read_trace(const Source& bytes, const std::string& file, const std::string& step) {
  Events events(file, step);
  Input input{.more = inflated(bytes, file), .file = file};
  input.fill();
  Handler handler(input, events);
  Json::sax_parse(Place(input), Place(), &handler);
  return events.finish();
}

}  // namespace assay::kineto
