// MLLOG lines as in mlcommons' mlperf_logging (ruleset 5.1.0): one file per run.
#pragma once

#include "harness/json/fwd.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace assay::training {

// Each line is written at once, so that a run that breaks leaves its log. Times never decrease.
class MlLog {
 public:
  using Write = std::function<void(std::string_view text, bool truncate)>;
  using Clock = std::function<std::int64_t()>;  // milliseconds since 1970

  // Without `write`, nothing is written.
  explicit MlLog(Write write, Clock clock = {});

  // Continues after existing lines: numbers and times follow theirs.
  void continue_after(std::string_view text);

  // Members of `metadata` follow the value. The format requires a place in the source in every line.
  void point(const char* key, const Json& value, const Json& metadata = Json::object());
  void start(const char* key, const Json& metadata = Json::object());
  void stop(const char* key, const Json& metadata = Json::object());

 private:
  void line(const char* type, const char* key, const Json& value, const Json& metadata);

  Write write_;
  Clock clock_;
  bool first_ = true;
  int number_ = 0;
  std::int64_t last_ms_ = 0;
};

}  // namespace assay::training
