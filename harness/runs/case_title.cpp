// Case names for people. Unknown families are named by their parameters.
#include "harness/runs/figures.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

namespace assay {

namespace {

std::string text_of(const Record& record, std::string_view name) { return param_text(record, name); }

std::string size_of_param(const Record& record, std::string_view name) {
  const auto bytes = param_number(record, name);
  return bytes && *bytes >= 0 ? format_bytes(*bytes) : text_of(record, name);
}

// Skips empty parts.
std::string join(std::initializer_list<std::string> parts, const char* separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

// Empty if the value is the usual one, which needs no mention.
std::string unless(const std::string& value, std::string_view usual) { return value == usual ? std::string() : value; }

std::string threads_title(const Record& record) {
  const std::string threads = text_of(record, "threads");
  if (threads.empty() || threads == "all") return {};
  if (threads == "core") return "one core";
  if (threads == "node") return "one node";
  return threads + (threads == "1" ? " thread" : " threads");
}

std::string gemm_title(const Record& r) {
  const std::string shape = join({text_of(r, "m"), text_of(r, "n"), text_of(r, "k")}, " x ");
  const std::string transpose = unless(text_of(r, "transpose"), "nn");
  return join({join({"gemm", text_of(r, "dtype"), shape}, " "), transpose, unless(text_of(r, "cache"), "cold"),
               unless(text_of(r, "duration"), "burst"), text_of(r, "accumulation") == "fast" ? "fast accumulation" : "",
               text_of(r, "gpus")},
              ", ");
}

std::string peak_title(const Record& r) {
  return join({join({"peak", text_of(r, "dtype")}, " "), unless(text_of(r, "isa"), "auto"), threads_title(r)}, ", ");
}

std::string memory_title(const Record& r) {
  const std::string store = text_of(r, "store");
  return join({join({"memory", text_of(r, "op"), size_of_param(r, "bytes")}, " "),
               store == "nontemporal" ? "non-temporal" : unless(store, "auto"), threads_title(r)},
              ", ");
}

std::string collective_title(const Record& r) {
  return join(
      {join({"collective", text_of(r, "op"), size_of_param(r, "bytes")}, " "), unless(text_of(r, "dtype"), "f32"),
       text_of(r, "inplace") == "true" ? "in place" : "", unless(text_of(r, "batching"), "batched"),
       collective_variant(r), r.world_ranks > 0 ? plural(r.world_ranks, "rank") : ""},
      ", ");
}

std::string transfer_title(const Record& r) {
  const std::string by = text_of(r, "by");
  return join({join({"transfer", text_of(r, "direction"), size_of_param(r, "bytes")}, " "),
               unless(text_of(r, "memory"), "device"), by.empty() ? "" : "by " + by, text_of(r, "gpus")},
              ", ");
}

std::string dataloader_title(const Record& r) {
  const std::string workers = text_of(r, "workers");
  return join(
      {join({"dataloader", text_of(r, "kind"), text_of(r, "stage")}, " "), unless(text_of(r, "path"), "generated"),
       workers.empty() ? "" : workers + (workers == "1" ? " worker" : " workers"), unless(text_of(r, "cache"), "warm")},
      ", ");
}

// "train gpt2-124m f32 4 x 512"; the record says what "recipe" stands for.
std::string training_title(const Record& r) {
  const auto size = [&](const char* name) {
    const std::string asked = text_of(r, name);
    return asked != "recipe" ? asked : r.attribute(name).value_or("");
  };
  const std::string accumulate = unless(size("accumulate"), "1");
  std::string batch = join({size("micro_batch"), unless(size("seq"), "none")}, " x ");
  if (const std::string image = text_of(r, "image_size"); !image.empty()) batch += fmt::format(" of {0} x {0}", image);
  if (!accumulate.empty()) batch += fmt::format(" (accumulated {} times)", accumulate);
  const std::string seed = unless(text_of(r, "seed"), "0"), zero = text_of(r, "zero");
  const std::string checkpointing = text_of(r, "checkpointing");
  const std::string recomputed = checkpointing == "full"        ? "checkpointed"
                                 : checkpointing == "selective" ? "norms and activations recomputed"
                                                                : "";
  return join(
      {join({r.family == "slice" ? "slice of" : "train", text_of(r, "model"), text_of(r, "precision"), batch}, " "),
       text_of(r, "mode") == "quality" ? "to quality" : "", recomputed, zero.empty() ? "" : "zero " + zero,
       unless(text_of(r, "scaling"), "weak"), text_of(r, "from").empty() ? "" : "continued", threads_title(r),
       unless(text_of(r, "path"), "generated"), seed.empty() ? "" : "seed " + seed},
      ", ");
}

std::string command_title(const Record& r) {
  const std::string name = text_of(r, "name");
  return join({name.empty() ? one_line(text_of(r, "argv"), 60) : name, text_of(r, "metric")}, ", ");
}

std::string generic_title(const Record& r) {
  std::string out = r.family;
  if (r.params.is_object())
    for (const auto& [name, value] : r.params.items()) out += fmt::format(" {}={}", name, text_of(r, name));
  if (!r.params.is_object() || r.params.empty()) out = r.key.empty() ? "case without a key" : r.key;
  if (r.world_ranks > 1) out += fmt::format(", {} ranks", r.world_ranks);
  return out;
}

}  // namespace

std::string collective_variant(const Record& record) {
  const std::string buffers = unless(text_of(record, "buffers"), "plain");
  return join(
      {buffers.empty() ? "" : buffers + " buffers", text_of(record, "nvls") == "off" ? "NVLS off" : "",
       text_of(record, "p2p") == "off" ? "P2P off" : "", text_of(record, "among") == "rail" ? "each rail apart" : ""},
      ", ");
}

std::string case_title(const Record& record) {
  using Title = std::string (*)(const Record&);
  static const std::map<std::string_view, Title> titles = {
      {"gemm", gemm_title},
      {"peak", peak_title},
      {"memory", memory_title},
      {"collective", collective_title},
      {"transfer", transfer_title},
      {"dataloader", dataloader_title},
      {"resnet", training_title},
      {"transformer", training_title},
      {"llama", training_title},
      {"slice", training_title},
      {"command", command_title},
      {"launch", [](const Record& r) { return "launch " + text_of(r, "op"); }}};
  const auto found = titles.find(record.family);
  if (found == titles.end()) return generic_title(record);
  std::string title = found->second(record);
  if (record.world_ranks > 1 && record.family != "collective") title += fmt::format(", {} ranks", record.world_ranks);
  return title;
}

std::string with_titles(const std::string& line) {
  std::string text;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t end = word.find_last_not_of(":,;)") + 1;
    Record record;
    record.key = word.substr(0, end);
    record.family = record.key.substr(0, record.key.find('/'));
    record.world_ranks = 0;  // a key does not say it
    const bool is_key = !record.family.empty() && record.family.size() < record.key.size() &&
                        std::ranges::all_of(record.family, [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); }) &&
                        record.key.find('=') != record.key.npos && record.key.find('*') == record.key.npos;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", is_key ? case_title(record) : record.key, word.substr(end));
  }
  return text;
}

}  // namespace assay
