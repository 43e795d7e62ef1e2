#include "harness/runs/step_shares.h"

#include "harness/core/units.h"
#include "harness/runs/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {

std::optional<double> step_share(const Record& record, std::string_view part, std::optional<double> step_seconds) {
  const Metric* step = step_metric(record);
  const auto seconds = span_of(record, part);
  if (!step || !(*step->value > 0) || !seconds || !std::isfinite(*seconds)) return std::nullopt;
  double sum = 0;
  for (const auto& [name, title] : step_parts) sum += std::max(0.0, span_of(record, name).value_or(0));
  const double share = std::max(0.0, *seconds) / std::max(sum, step_seconds.value_or(*step->value));
  return std::isfinite(share) ? std::optional(share) : std::nullopt;
}

std::optional<CommunicationShare> communication_share(const Record& record) {
  const auto pending = step_share(record, "exposed_communication");
  if (!pending) return std::nullopt;
  CommunicationShare share{*pending, {}};
  const Metric *muted = find_metric(record, "exposed_communication"), *step = step_metric(record);
  if (muted && muted->unit == "s" && std::isfinite(*muted->value)) share.muted = *muted->value / *step->value;
  return share;
}

bool CommunicationShare::agree() const {
  constexpr double tolerance = 0.05;
  return !muted || std::abs(*muted - pending) <= tolerance;
}

std::string CommunicationShare::by_muting() const {
  if (!muted) return "";
  std::string text = fmt::format("by muting {:.3g} %", 100 * *muted);
  if (agree()) return text;
  return text + (*muted > pending
                     ? ", because the exchange also slows the computation beside it"
                     : ", because a rank that waits leaves its processor or its memory's bandwidth to the others");
}

}  // namespace assay
