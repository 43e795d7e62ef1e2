// Decisions of people about events and series, which the store keeps with who and when.
#pragma once

#include <filesystem>
#include <string>

namespace assay::history {

struct DecisionRequest {
  std::string target;  // an event's id, or a pattern of series' names
  std::string reason;
  std::string until = {};  // the last night of it: 2026-01-31; may be empty where a decision needs none
};

// Each keeps a decision in this store, and returns it as a sentence. They throw UsageError, which begins with the verb,
// for a blank reason where one is needed, for a target that names nothing, and for a wrong date.

// Somebody knows of the event whose id begins with the target: it no longer fails checks.
std::string acknowledge(const std::filesystem::path& store, const DecisionRequest& given);
// Series or an event fail no check until a day.
std::string mute(const std::filesystem::path& store, const DecisionRequest& given);
// Ends the mute of this very target. It may have no reason.
std::string unmute(const std::filesystem::path& store, const DecisionRequest& given);
// Changes of these series up to a day (two weeks from the newest night) are meant.
std::string expect(const std::filesystem::path& store, const DecisionRequest& given);

}  // namespace assay::history
