#include "workloads/training/case_files.h"

#include "harness/core/error.h"
#include "workloads/data/file.h"

#include <fcntl.h>

#include <algorithm>
#include <cctype>

namespace assay::training {

namespace fs = std::filesystem;

CheckpointIdentity identity_of(const Settings& settings, const data::TrainingSet& set,
                               std::optional<std::uint64_t> seed) {
  return {.model = settings.model->name(),
          .mode = word_of(settings.quality ? Mode::quality : Mode::throughput),
          .precision = settings.precision,
          .optimizer = word_of(settings.recipe.options.optimizer),
          .data = fmt::format("{}, {} {}", set.name(), set.extent(), settings.seq > 0 ? "tokens" : "pixels"),
          .seed = seed ? std::to_string(*seed) : std::string(),
          .global_batch = std::to_string(settings.global_batch())};
}

std::optional<std::string> problem_of_from(const Settings& settings) {
  if (settings.from.empty()) return std::nullopt;
  try {
    const CheckpointIndex index = read_index(settings.from);
    require_identity(settings.from, index, identity_of(settings, *open_data(settings), std::nullopt));
    require_shards(settings.from, index);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

CaseFiles::CaseFiles(Context& context, const Settings& settings, const data::TrainingSet& set, const std::string& key)
    : context_(context),
      from_(settings.from),
      identity_(identity_of(settings, set, settings.seed + context.inputs.seed)),
      saves_(settings.save_every > 0 && !context.inputs.run_dir.empty()) {
  // A case is identified by its key, ranks and the plan's seed.
  const std::string whole = fmt::format("{} ranks={} seed={}", key, context.inputs.world.ranks, context.inputs.seed);
  std::string name = fs::path(settings.model_name).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  stem_ = fmt::format("{}-{:016x}", name.substr(0, 60), checksum(std::as_bytes(std::span(whole))));
  file_ = context.inputs.run_dir / "checkpoints" / (stem_ + ".ckpt");
}

std::optional<CheckpointNotes> CaseFiles::resume(Trainer& trainer, Transfer* transfer) const {
  std::error_code none;
  if (!saves_ || context_.comm.broadcast_value(fs::exists(file_, none) ? 1 : 0) < 0.5) return std::nullopt;
  try {
    return restored(trainer, file_, "resumed", transfer);
  } catch (const Error& error) {
    throw Error(fmt::format("{}; remove it to start over", error.what()));
  }
}

std::optional<CheckpointNotes> CaseFiles::continue_from(Trainer& trainer) const {
  if (from_.empty()) return std::nullopt;
  return restored(trainer, from_, "from", nullptr);
}

std::optional<CheckpointNotes> CaseFiles::restored(Trainer& trainer, const fs::path& file, const char* label,
                                                   Transfer* transfer) const {
  Transfer read;
  CheckpointNotes notes = trainer.restore(file, identity_, &read);
  context_.outputs.labels[label] =
      fmt::format("step {}, checksum {}, of {}", trainer.steps(), read.checksum, notes.layout);
  if (transfer) *transfer = read;
  return notes;
}

Transfer CaseFiles::save(Trainer& trainer, Json meta) const {
  Transfer written = trainer.save(file_, identity_, std::move(meta));
  context_.outputs.labels["checkpoint"] = fmt::format("step {}, checksum {}", trainer.steps(), written.checksum);
  return written;
}

void CaseFiles::restore(Trainer& trainer, Transfer& transfer) const {
  // Ask the kernel to drop the files from the page cache, so that they are read from the disk.
  const CheckpointIndex index = read_index(file_);
  for (const KeptShard& shard : index.shards)
    if (const auto file = data::File::try_open(shard_file(file_, index, shard.rank).c_str(), false))
      ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  context_.comm.barrier();
  trainer.restore(file_, identity_, &transfer);
}

std::string CaseFiles::log_name(std::uint64_t seed) const { return fmt::format("mllog/{}-seed{}.log", stem_, seed); }

Metric rate_metric(const char* name, const Transfer& transfer) {
  const bool moved = transfer.seconds > 0;
  return value_metric(name,
                      moved ? std::optional(static_cast<double>(transfer.bytes) / transfer.seconds) : std::nullopt,
                      "B/s", Better::higher);
}

void damage_image(const data::TrainingSet& set, std::uint64_t seed, Context& context) {
  if (context.comm.rank() != 0 || !context.inputs.faults.contains(Fault::corrupt_image)) return;
  if (set.damage_first_image(seed)) context.inject(Fault::corrupt_image);
}

void check_unusable(const data::TrainingSet& set, Checks& checks) {
  if (set.name() != "files") return;
  const std::vector<std::string> lines = set.unusable();
  checks.at_most("unusable_samples", static_cast<double>(lines.size()), 0, lines);
}

}  // namespace assay::training
