#include "workloads/training/case_files.h"

#include "harness/core/error.h"
#include "workloads/data/file.h"

#include <fcntl.h>

#include <algorithm>
#include <cctype>

namespace assay::training {

namespace fs = std::filesystem;

CaseFiles::CaseFiles(const Context& context, const Settings& settings, const std::string& key)
    : comm_(context.comm), saves_(settings.save_every > 0 && !context.inputs.run_dir.empty()) {
  // A case is identified by its key, ranks and the plan's seed.
  const std::string whole = fmt::format("{} ranks={} seed={}", key, context.inputs.world.ranks, context.inputs.seed);
  std::string name = fs::path(settings.model_name).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-'; }, '_');
  stem_ = fmt::format("{}-{:016x}", name.substr(0, 60), checksum(std::as_bytes(std::span(whole))));
  file_ = context.inputs.run_dir / "checkpoints" / (stem_ + ".ckpt");
  identity_ = {settings.model->name(), settings.precision, whole};
}

std::optional<fs::path> CaseFiles::to_resume() const {
  std::error_code none;
  const bool there = saves_ && comm_.broadcast_value(fs::exists(file_, none) ? 1 : 0) > 0.5;
  return there ? std::optional(file_) : std::nullopt;
}

void CaseFiles::evict() const {
  const data::File file = data::File::open(file_.string());
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

std::string CaseFiles::log_name(std::uint64_t seed) const { return fmt::format("mllog/{}-seed{}.log", stem_, seed); }

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
