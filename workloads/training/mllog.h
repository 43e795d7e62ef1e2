// MLLOG lines, as mlcommons' mlperf_logging writes and reads them (ruleset 5.1.0): one file a run.
#pragma once

#include "harness/core/json_fwd.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace assay::training {

// Lines go out as they are written, so that a run that breaks leaves what it had done. Times never go back.
class MlLog {
 public:
  using Write = std::function<void(std::string_view text, bool anew)>;
  using Clock = std::function<std::int64_t()>;  // milliseconds since 1970

  // Nothing is written without `write`.
  explicit MlLog(Write write, Clock clock = {});

  // Goes on after lines that are there already: numbers and times follow theirs.
  void continue_after(std::string_view text);

  // Members of `metadata` follow the value; every line carries its place in the source, as the format asks.
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
