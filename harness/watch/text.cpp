#include "harness/watch/text.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace assay::watch {
namespace {

constexpr std::size_t bar_columns = 78, max_rank_bars = 8;
constexpr const char* short_names[part_count] = {"data", "forward", "backward", "comm", "wait", "opt", "save"};

// How many columns each part has; those of at least 1 % have one.
std::vector<std::size_t> columns_of(std::span<const double> parts, double step) {
  std::vector<std::size_t> columns(parts.size(), 0);
  double at = 0;
  std::size_t before = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    at += std::max(0.0, parts[p]) / step;
    const auto end = static_cast<std::size_t>(std::llround(std::min(1.0, at) * bar_columns));
    columns[p] = end > before ? end - before : 0;
    before = std::max(before, end);
  }
  return columns;
}

std::string filled(std::string text, std::size_t columns) {
  text.resize(std::min(text.size(), columns));
  return text + std::string(columns - text.size(), ' ');
}

// Waits are empty, so that what a rank does itself stands out.
std::string rank_bar(const Parts& parts, double step) {
  const auto columns = columns_of(parts, step);
  std::string bar = "|";
  for (std::size_t p = 0; p < part_count; ++p)
    if (columns[p] > 0)
      bar += std::string(columns[p] - 1, p == static_cast<std::size_t>(Part::waiting) ? ' ' : '#') + "|";
  return bar;
}

std::string gain_text(double gain) { return gain > 1.005 ? fmt::format("at most {:.2f} x", gain) : ""; }

std::string headline(const Shown& shown) {
  std::string text = shown.name.empty() ? "job" : shown.name;
  if (!shown.steps) return fmt::format("{} · {}", text, format_seconds(shown.seconds));
  const JobSteps& steps = *shown.steps;
  const double median = steps.summary.median;
  text += fmt::format(" · {} · {} of {} (p95 {})", plural(static_cast<std::int64_t>(steps.ranks.size()), "rank"),
                      plural(steps.count, "step"), format_seconds(median), format_seconds(steps.p95));
  if (shown.items) text += " · " + format_quantity(*shown.items / median, shown.unit + "/s");
  if (shown.flops) text += " · " + format_quantity(*shown.flops / median, "FLOP/s");
  if (shown.mfu) text += fmt::format(" · MFU {:.0f} %", 100 * *shown.mfu);
  if (steps.overhead && steps.overhead->ci95)
    text += fmt::format(" · watching cost {:.1f} % ({:.1f} to {:.1f})", 100 * steps.overhead->share,
                        100 * steps.overhead->ci95->low, 100 * steps.overhead->ci95->high);
  return text;
}

std::string use_text(const Shown& shown) {
  const JobUse& use = shown.use;
  std::string text = fmt::format("used {:.2f} CPUs", use.cpu_seconds() / std::max(shown.seconds, 1e-9));
  if (use.peak_memory) text += fmt::format(", {} of memory", format_bytes(*use.peak_memory));
  text += fmt::format(", {}", plural(use.threads, "thread"));
  if (use.read && use.written)
    text += fmt::format(", read {} and wrote {}", format_bytes(*use.read), format_bytes(*use.written));
  return text;
}

}  // namespace

std::string bar(const std::vector<std::pair<std::string_view, double>>& parts, double step) {
  std::vector<double> seconds;
  for (const auto& [name, one] : parts) seconds.push_back(one);
  const auto columns = columns_of(seconds, step);
  std::string text = "|";
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (columns[p] == 0) continue;
    const std::string share = fmt::format("{:.0f}%", 100 * seconds[p] / step);
    std::string inside = fmt::format("{} {}", parts[p].first, share);
    if (inside.size() > columns[p] - 1) inside = share;
    if (inside.size() > columns[p] - 1) inside.clear();
    text += filled(inside, columns[p] - 1) + "|";
  }
  return text;
}

std::string findings_text(const std::vector<Diagnosis>& found, const std::vector<std::string>& sound) {
  std::string text;
  const char* order = "Change first";
  for (const Diagnosis& one : found) {
    text += fmt::format("{}: {}\n    -> {}{}\n", order, one.says, one.change,
                        one.gain > 1.005 ? "   " + gain_text(one.gain) : "");
    order = "Then";
  }
  if (found.empty()) text += "No rule found a cause outside of the computation.\n";
  if (!sound.empty()) text += fmt::format("Not the cause: {}.\n", joined(sound));
  return text;
}

std::string bars(const JobSteps& steps) {
  if (!(steps.step > 0)) return {};
  std::vector<std::pair<std::string_view, double>> named;
  for (std::size_t p = 0; p < part_count; ++p) named.emplace_back(short_names[p], steps.parts[p]);
  std::string text = fmt::format("{:<7} {}\n", "step", bar(named, steps.step));
  if (steps.ranks.size() < 2) return text;
  // Those that do most themselves first.
  std::vector<const RankParts*> ranks;
  for (const RankParts& rank : steps.ranks) ranks.push_back(&rank);
  const auto waits = [](const RankParts* rank) { return rank->parts[static_cast<std::size_t>(Part::waiting)]; };
  std::ranges::stable_sort(ranks, [&](const RankParts* a, const RankParts* b) { return waits(a) < waits(b); });
  const std::size_t left_out = ranks.size() > max_rank_bars ? ranks.size() - max_rank_bars : 0;
  ranks.resize(ranks.size() - left_out);
  std::ranges::stable_sort(ranks, {}, [](const RankParts* rank) { return rank->rank; });
  for (const RankParts* rank : ranks) {
    const bool late = steps.straggler && steps.straggler->rank == rank->rank && steps.straggler->persistent &&
                      steps.straggler->saved >= 0.05 * steps.step;
    text += fmt::format("{:<7} {}{}\n", fmt::format("rank {}", rank->rank), rank_bar(rank->parts, steps.step),
                        (late ? "  waited for" : "") + (rank->host.empty() ? "" : "  " + rank->host));
  }
  if (left_out > 0)
    text += fmt::format("{} more, which wait longer\n", plural(static_cast<std::int64_t>(left_out), "rank"));
  return text;
}

std::string end_text(const Shown& shown) {
  std::string text = headline(shown) + "\n";
  if (shown.steps) {
    text += bars(*shown.steps);
    if (shown.cuda && shown.gpu_parts) text += "The parts are times of the GPUs, by events in their streams.\n";
    if (shown.cuda && !shown.gpu_parts)
      text += "The parts are times of the host: a GPU works behind it, so only waits are judged.\n";
    text += findings_text(shown.found, shown.sound) + shown.traced;
  } else {
    text += fmt::format("No steps: {}.\n", shown.why_no_steps);
  }
  text += use_text(shown) + "\n";
  for (const std::string& remark : shown.remarks) text += remark + "\n";
  if (!shown.run.empty()) text += fmt::format("assay report {}\n", shown.run);
  return text;
}

std::vector<std::string> standing_lines(const std::vector<Standing>& ranks) {
  std::vector<std::string> lines;
  std::uint64_t most = 0;
  for (const Standing& rank : ranks) most = std::max(most, rank.entered);
  std::string last;
  for (const Standing& rank : ranks)
    if (rank.entered == most) last = rank.collective;
  for (const Standing& rank : ranks) {
    std::string line = fmt::format("rank {}: {}", rank.rank, plural(static_cast<std::int64_t>(rank.steps), "step"));
    if (rank.entered > 0) line += fmt::format(", in or after collective {} ({})", rank.entered, rank.collective);
    if (rank.entered < most) line += fmt::format(", has not entered {} ({}), as others have", most, last);
    line += rank.stack.empty() ? ", does not say where it is" : ": " + rank.stack;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace assay::watch
