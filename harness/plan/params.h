// Parameters of a case and the schema that a family checks them by.
#pragma once

#include "harness/core/json_fwd.h"
#include "harness/device/device.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace assay {

using ParamValue = std::variant<bool, std::int64_t, double, std::string>;

// As in a key: 4096, true, f32.
std::string to_string(const ParamValue& value);
Json to_json(const ParamValue& value);

// The parameters of one case, in the family's order.
class Params {
 public:
  void set(std::string name, ParamValue value);
  bool has(std::string_view name) const;
  // Throw Error when the parameter is absent or of another type.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  const std::vector<std::pair<std::string, ParamValue>>& items() const { return items_; }
  // family/param=value/...
  std::string key(std::string_view family) const;
  Json to_json() const;

 private:
  const ParamValue& at(std::string_view name) const;

  std::vector<std::pair<std::string, ParamValue>> items_;
};

enum class ParamType {
  integer,  // 64 bits, within [minimum, maximum]
  bytes,    // an integer, also written "64MiB", "1GB"; canonical form: bytes
  seconds,  // a real, also written "30s", "500ms"
  real,
  flag,    // true or false
  choice,  // one of `allowed`
  count,   // a positive integer or one of `allowed` (threads: 2, "all")
  text,    // free text (a path)
};

struct ParamSpec {
  std::string name;
  ParamType type = ParamType::integer;
  std::vector<ParamValue> defaults;  // a bare family runs their cross product
  std::vector<std::string> allowed;  // choice, count
  std::optional<double> minimum;
  std::optional<double> maximum;
  std::string help;                 // one line, with the unit
  std::vector<DeviceKind> devices;  // where it exists; empty: everywhere. Left out of keys elsewhere.
  // Defaults on a GPU where those differ; empty: `defaults`.
  std::vector<ParamValue> cuda_defaults = {};
  // Values that only one kind of device has (launch: op=fork_join on a CPU, op=kernel on a GPU); those not named here
  // are everywhere. Elsewhere a list goes without them, and a list of nothing else makes skips.
  std::map<std::string, DeviceKind> only_on = {};

  bool has(DeviceKind device) const;
  bool has(const ParamValue& value, DeviceKind device) const;
  // The defaults there are on this device, in order.
  const std::vector<ParamValue>& defaults_on(DeviceKind device) const;
};

using Schema = std::vector<ParamSpec>;

// The specification of a parameter that is one of `allowed`.
ParamSpec choice(std::string name, std::vector<std::string> allowed, const std::vector<std::string>& defaults,
                 std::string help);
// `gpus` of a case that uses one GPU a rank: each (one rank works at a time) or together. The harness does the turns;
// a family only names the parameter. Absent on a CPU, where ranks work together.
ParamSpec gpus_param();
// Its value; empty where the case has none.
std::string gpus_of(const Params& params);

}  // namespace assay
