// The sections of every report, each from a source of its own.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Tables of cases: figure, interval, fraction of peak, reference, verdict.
// suite_sections() shows micro-benchmarks: one table per suite and machine. Several runs of a machine share a row: the
// newest figure with the range of all.
std::vector<Section> suite_sections(const RunSet& runs);
// Shows training in the same form.
std::vector<Section> workload_sections(const RunSet& runs);
// Shows collectives as nccl-tests prints them; in the terminal only on request.
std::vector<Section> collective_sections(const RunSet& runs, bool in_terminal);

// The machines of the runs side by side, and the findings that affect figures, each with a fix.
std::vector<Section> environment_sections(const RunSet& runs);

// "What failed": cases that failed a check or broke, with reason and place.
std::vector<Section> attention_sections(const RunSet& runs);
// "Skipped": by reason.
std::vector<Section> skipped_sections(const RunSet& runs);
// "Not read": lines that are not records, counted and listed.
std::vector<Section> unreadable_sections(const RunSet& runs);

// "How was this measured?" has protocols in words, and one row per record, which figures link to, with all its figures
// and sample statistics. Rows have the anchor Entry::anchor(). Beyond 2,000 records only the newest of each case is
// shown.
std::vector<Section> method_sections(const RunSet& runs);
// "Is this normal?" has the peaks and references that figures are compared with, and their sources.
std::vector<Section> normal_sections(const RunSet& runs);

// The samples behind the key figures, as distribution and timeline: pictures and statistics of the key figures' cases,
// with clock and power if recorded; the statistics of all other cases are with their records (method_sections).
std::vector<Section> sample_sections(const RunSet& runs);

// Where a training step's time goes: a stacked bar and a row per training case: waiting for data, forward, backward,
// exposed communication, optimizer, and what is left. Empty without training.
std::vector<Section> step_sections(const RunSet& runs);
// Of imported traces: what the GPUs do in a step, the heaviest kernels, or without a GPU operators, and how long
// collectives transfer and wait for the last rank. Empty without traces.
std::vector<Section> trace_sections(const RunSet& runs);

}  // namespace assay::report
