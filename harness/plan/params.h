// The parameters of a case, and the axes by which a family declares them.
#pragma once

#include "harness/core/words.h"
#include "harness/device/device.h"
#include "harness/json/fwd.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace assay {

class JsonValue;

using ParamValue = std::variant<bool, std::int64_t, double, std::string>;

// The text of a value in a key: 4096, true, f32.
std::string to_string(const ParamValue& value);
Json to_json(const ParamValue& value);

// The parameters of one case, in the family's order.
class Params {
 public:
  void set(std::string name, ParamValue value);
  bool has(std::string_view name) const;
  // These throw Error if the parameter is absent or of another type.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  // A value of any type, as in a key; empty if absent.
  std::string word(std::string_view name) const;
  // A count's number; absent if the parameter is, or if it is a word ("all").
  std::optional<std::int64_t> number(std::string_view name) const;
  // The enumerator that a choice of axis::choice<E> names; also throws on any other word.
  template <Worded E>
  E choice(std::string_view name) const {
    return static_cast<E>(index_of(name, words(E{})));
  }

  const std::vector<std::pair<std::string, ParamValue>>& items() const { return items_; }
  // family/param=value/...
  std::string key(std::string_view family) const;
  Json to_json() const;  // values keep their types

 private:
  const ParamValue* find(std::string_view name) const;
  const ParamValue& at(std::string_view name) const;
  std::size_t index_of(std::string_view name, std::span<const std::string_view> words) const;

  std::vector<std::pair<std::string, ParamValue>> items_;
};

void read(const JsonValue& value, Params& to);

enum class ParamType {
  integer,  // 64 bits
  bytes,    // an integer, also written "64MiB", "1GB"; canonical form: bytes
  seconds,  // a real, also written "30s", "500ms"
  flag,     // true or false
  choice,   // one of `allowed`
  count,    // a positive integer or one of `allowed` (threads: 2, "all")
  text,     // free text (a path)
};

// One parameter of a family. Declare it with the functions of namespace axis and the setters below:
//   axis::bytes("bytes", {1 << 20}).runs_on_gpu({1 << 30}).at_least(64).doc("bytes of one array")
struct ParamSpec {
  std::string name;
  ParamType type = ParamType::integer;
  std::vector<ParamValue> defaults = {};       // a bare family runs their cross product
  std::vector<ParamValue> cuda_defaults = {};  // defaults on a GPU; empty: `defaults`
  std::vector<std::string> allowed = {};       // choice, count
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  std::string help = {};                 // one line, with the unit
  std::vector<DeviceKind> devices = {};  // kinds that have this parameter; empty: all. Keys of other devices lack it.
  // Values that only one kind of device has (launch: op=fork_join on a CPU, op=kernel on a GPU). Other devices drop
  // them from a list; if nothing else is in the list, its cases are skipped.
  std::map<std::string, DeviceKind> only_on = {};
  std::vector<std::int64_t> sweep =
      {};  // the values of the word "sweep", in ascending order; empty: the word is not allowed
  // A case with the default of all kinds of device does not have this parameter: its key is as before it existed.
  bool omit_default = false;
  // Text that a shell reads, so a comma is part of it. In a plan a command is also a list of its words, and variables
  // are an object.
  enum class Shell { no, command, variables };
  Shell shell = Shell::no;

  bool has(DeviceKind device) const;
  bool has(const ParamValue& value, DeviceKind device) const;
  const std::vector<ParamValue>& defaults_on(DeviceKind device) const;

  // The values that a bare family runs.
  ParamSpec& runs(std::initializer_list<ParamValue> values);
  ParamSpec& runs(const std::vector<std::string>& words);
  ParamSpec& runs_on_gpu(std::initializer_list<ParamValue> values);
  ParamSpec& runs_on_gpu(const std::vector<std::string>& words);
  ParamSpec& at_least(double limit);
  ParamSpec& range(double lowest, double highest);
  // The parameter exists only on this kind of device.
  ParamSpec& only(DeviceKind device);
  // These values exist only on this kind of device.
  ParamSpec& only(DeviceKind device, const std::vector<std::string>& values);
  // "sweep" means these values; the run takes those that fit.
  ParamSpec& sweeps(std::vector<std::int64_t> values);
  ParamSpec& omitted_by_default();
  ParamSpec& read_by_shell(Shell as);
  ParamSpec& doc(std::string line);
};

using Schema = std::vector<ParamSpec>;

namespace axis {

ParamSpec integer(std::string name, std::int64_t value);
ParamSpec bytes(std::string name, std::initializer_list<std::int64_t> values);
ParamSpec seconds(std::string name, double value);
ParamSpec flag(std::string name, bool value = false);
ParamSpec text(std::string name, std::string value);
// Choices and counts run all their words unless runs() says otherwise.
ParamSpec choice(std::string name, std::vector<std::string> words);
ParamSpec count(std::string name, std::vector<std::string> words);
// A choice with the words of an enum.
template <Worded E>
ParamSpec choice(std::string name) {
  return choice(std::move(name), all_words<E>());
}
// `gpus` of a case that uses one GPU per rank. The harness takes the turns; a family only declares the parameter.
// On a CPU ranks work together unless it is `each`; keys then lack it.
ParamSpec gpus();

}  // namespace axis

// Whether GPUs (on a CPU: ranks) of several ranks run one at a time or all at once.
enum class Gpus { each, together };
constexpr auto words(Gpus) { return std::to_array<std::string_view>({"each", "together"}); }
// The value of the parameter `gpus`; absent if the case lacks it.
std::optional<Gpus> gpus_of(const Params& params);

}  // namespace assay
