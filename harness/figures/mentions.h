// Where an output names figures: in JSON, and in text for people.
#pragma once

#include "harness/figures/foreign.h"
#include "harness/json/json.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A name and what is in the place of its value.
struct Mention {
  // With the words before it: "eval throughput", and in JSON the path: "train.rate"; "gbench:NAME:METRIC" in Google
  // Benchmark's, or "gbench:NAME:" of a benchmark without a figure.
  std::string name;
  double value = 0;
  std::string not_a_number = {};         // what is there instead; empty if there is a number
  bool prose = false;                    // no number, but no sign either that one was meant
  std::optional<std::string> unit = {};  // base unit; as it is written in JSON and in "name value unit better"
  std::optional<Better> better = {};
  std::string case_name = {}, metric = {};  // that a JSON object says it belongs to
};
using MentionSink = std::function<void(Mention&&)>;

enum class NameMatch { none, end, whole };
// Whether a mention has this name, or one that ends in it after a blank, a point, a slash or a colon.
NameMatch match_of(const Mention& mention, std::string_view name);

// What an output mentions.
struct Mentions {
  std::vector<Mention> all;
  std::vector<Mention> last;  // the members, by their names alone, of an object that is the whole last line
  std::string last_line;      // empty if there is none
};
// Those that have, in the sense of match_of(), one of some names.
Mentions mentions_of(std::string_view output, std::span<const std::string> names);
// The names of what is printed as a figure, each once, at most 1000.
std::vector<std::string> printed_names(std::string_view output);

// As a terminal shows it: without escape sequences, and of each line what follows its last carriage return.
std::string visible_text(std::string_view output);

// Calls add for the figures of the list "benchmarks" of Google Benchmark's JSON.
void each_gbench_mention(const Json& benchmarks, const MentionSink& add);

}  // namespace assay
