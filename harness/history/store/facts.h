// Facts about a run and its machine: dotted names and texts.
#pragma once

#include "harness/history/store/store.h"

#include <string>
#include <string_view>

namespace assay::store {

// The facts of a run: its environment (or that of `options`), labels, plan and the state of its sources. A label NAME
// becomes the fact label.NAME, or NAME in an imported run.
Facts facts_of(const RunData& run, const AddOptions& options);

// Host, CPU and GPUs: "node7, AMD Zen 4, 8 x NVIDIA H200"; by class without the host. An imported
// run has the name that its file gives the machine. Never empty.
std::string machine_name(const RunData& run, const Facts& facts, bool by_class);

// Changes when a GPU was replaced; empty if none is known by a uuid.
std::string hardware_of(const Facts& facts);

// Facts as one line of JSON, and back. Throws Error for any other text.
std::string text_of(const Facts& facts);
Facts facts_of_text(std::string_view text);

}  // namespace assay::store
