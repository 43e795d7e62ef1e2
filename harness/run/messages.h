// What travels over the channel, to JSON and back.
#pragma once

#include "harness/run/execute.h"
#include "harness/trace/trace.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Values keep their types; throws Error on a value that is no scalar.
Params params_from_json(const Json& json);

ProtocolOverrides overrides_from_json(const Json& json);

// {"type":"case","case":index,...}
Json to_message(const CaseOrder& order, int index);
// Throws Error on a family this binary does not know, and on members of a wrong type.
CaseOrder order_from(const Json& message, std::span<const Family> families);

// {"type":"file","name":"mllog/x.log","text":"...","anew":true}
Json to_message(const std::string& name, std::string_view text, bool anew);

// {"type":"file","name":"timeline","entries":[[name, category, payload, start_ns, duration_ns, thread], ...]}
Json to_message(std::span<const trace::Entry> entries);
std::vector<trace::Entry> entries_from(const Json& message);

}  // namespace assay
