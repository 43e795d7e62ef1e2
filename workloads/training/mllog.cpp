#include "workloads/training/mllog.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace assay::training {

MlLog::MlLog(Write write, Clock clock) : write_(std::move(write)), clock_(std::move(clock)) {
  if (!clock_)
    clock_ = [] {
      using namespace std::chrono;
      return std::int64_t{duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
    };
}

void MlLog::point(const char* key, const Json& value, const Json& metadata) {
  line("POINT_IN_TIME", key, value, metadata);
}

void MlLog::start(const char* key, const Json& metadata) { line("INTERVAL_START", key, nullptr, metadata); }

void MlLog::stop(const char* key, const Json& metadata) { line("INTERVAL_END", key, nullptr, metadata); }

void MlLog::continue_after(std::string_view text) {
  number_ = static_cast<int>(std::ranges::count(text, '\n'));
  first_ = false;
  constexpr std::string_view name = "\"time_ms\":";
  const std::size_t at = text.rfind(name);
  if (at != text.npos) std::from_chars(text.data() + at + name.size(), text.data() + text.size(), last_ms_);
}

void MlLog::line(const char* type, const char* key, const Json& value, const Json& metadata) {
  if (!write_) return;
  last_ms_ = std::max(last_ms_, clock_());
  Json all = {{"namespace", ""}, {"time_ms", last_ms_}, {"event_type", type}, {"key", key}, {"value", value}};
  // For the source line that the format wants, use the number of the log line, which is as unique.
  all["metadata"] = {{"file", "assay"}, {"lineno", ++number_}};
  for (const auto& [name, each] : metadata.items()) all["metadata"][name] = each;
  write_(":::MLLOG " + all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", first_);
  first_ = false;
}

}  // namespace assay::training
