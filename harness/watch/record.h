// A watched job as a record, so that reports, comparisons and histories take it.
#pragma once

#include "harness/record/record.h"
#include "harness/sensors/job_sensor.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/ranks.h"
#include "harness/watch/watch.h"
#include "harness/watch/window.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

struct Seen {
  double started = 0;  // on the monotonic clock
  std::string started_utc;
  double seconds = 0;
  std::string problem;  // how it ended; empty if with 0
  JobUse use;
  std::map<std::string, Series> series;
  std::vector<RankInfo> ranks;
  std::optional<JobSteps> steps;
  std::vector<Diagnosis> found;  // also by the rules of `window`
  std::optional<Window> window;  // of recorded steps
  GpuUse gpus;
  std::optional<SheetPeak> peak;  // of all GPUs of the job
  std::optional<OutsideCpu> outside;
  double watcher_cpus = 0;  // that the watcher used itself
};

// The name of a job that was given none: "train.py" of "torchrun --nproc-per-node 2 train.py --steps 5".
std::string name_of_job(const std::vector<std::string>& words);

// Key "watch/NAME"; its figure is the time of a step, or without steps that of the job. The spans are a step's parts.
Record record_of(const WatchRequest& request, const Seen& seen);
// The steps alone: figures, samples, and where they are the processor's, spans.
void add_steps(const WatchRequest& request, const Seen& seen, Record& record);
// Writes the run directory `request.out` with this record, and what was seen of traces in run.json.
void write_record(const WatchRequest& request, const Seen& seen, const Record& record);

}  // namespace assay::watch
