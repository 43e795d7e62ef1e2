#include "reports/sizing/published.h"

#include "harness/json/json.h"
#include "harness/runs/filled_text.h"

namespace assay::report::sizing {

namespace {

constexpr int published_schema = 1;
constexpr double max_figure = 1e18;

std::optional<double> above_zero(const std::optional<Cursor>& at) {
  const auto value = at ? at->number(0, max_figure) : std::nullopt;
  if (value && *value <= 0) at->error("must be above 0");
  return value;
}

std::optional<std::int64_t> count_of(const std::optional<Cursor>& at) {
  return at ? at->integer(1, std::int64_t{1} << 40) : std::nullopt;
}

PublishedRun read_run(const Cursor& entry) {
  PublishedRun run;
  if (!entry.object()) return run;
  entry.only({"hardware", "model", "precision", "gpus", "seq", "weights", "layers", "width", "source", "tokens_per_gpu",
              "mfu", "power_limit_watts"});
  run.hardware = filled_text(entry.need("hardware"));
  run.model = filled_text(entry.need("model"));
  run.precision = filled_text(entry.need("precision"));
  run.source = filled_text(entry.need("source"));
  run.gpus = count_of(entry.find("gpus"));
  run.seq = count_of(entry.need("seq")).value_or(1);
  run.weights = above_zero(entry.need("weights")).value_or(1);
  run.mfu = above_zero(entry.find("mfu"));
  run.power_limit = above_zero(entry.find("power_limit_watts"));
  run.tokens_per_gpu = above_zero(entry.find("tokens_per_gpu"));
  if (run.mfu.has_value() == run.tokens_per_gpu.has_value())
    entry.error("needs either tokens_per_gpu or mfu");
  else if (run.mfu && *run.mfu >= 1)
    entry.find("mfu")->error("must be below 1");
  run.layers = count_of(entry.need("layers")).value_or(1);
  run.width = count_of(entry.need("width")).value_or(1);
  return run;
}

// [low, high], or with a figure between them.
std::vector<double> read_ascending(const Cursor& at, std::size_t count) {
  std::vector<double> values;
  for (const Cursor& each : at.elements())
    if (const auto value = each.number(0, max_figure)) values.push_back(*value);
  if (values.size() != count || !std::ranges::is_sorted(values)) {
    at.error("must be " + std::to_string(count) + " ascending numbers");
    values.assign(count, 0);
  }
  return values;
}

PublishedShare read_share(const Cursor& root, const char* name, const char* figure,
                          std::optional<double>* hours_lost = nullptr) {
  PublishedShare share;
  const auto at = root.need(name);
  if (!at || !at->object()) return share;
  std::vector<std::string> members = {figure, "source"};
  if (hours_lost) members.emplace_back("hours_lost");
  at->only(members);
  share.source = filled_text(at->need("source"));
  if (hours_lost) *hours_lost = above_zero(at->need("hours_lost"));
  if (const auto range = at->need(figure)) {
    const auto values = read_ascending(*range, 2);
    share.low = values[0];
    share.high = values[1];
  }
  return share;
}

PyTorchRatio read_ratio(const Cursor& entry) {
  static const std::vector<std::string> devices = {"cpu", "cuda"};
  PyTorchRatio ratio;
  if (!entry.object()) return ratio;
  entry.only({"model", "precision", "device", "ratio", "source"});
  ratio.model = filled_text(entry.need("model"));
  ratio.precision = filled_text(entry.need("precision"));
  ratio.source = filled_text(entry.need("source"));
  if (const auto at = entry.need("device")) ratio.device = at->choice(devices).value_or("");
  if (const auto at = entry.need("ratio")) {
    const auto values = read_ascending(*at, 3);
    ratio.low = values[0], ratio.value = values[1], ratio.high = values[2];
  }
  return ratio;
}

}  // namespace

double PublishedRun::half_square() const {
  return 6 * static_cast<double>(layers) * static_cast<double>(width) * static_cast<double>(seq);
}

double PublishedRun::flops_per_token() const { return 6 * weights + half_square(); }

double PublishedRun::utilization(double peak) const {
  if (mfu) return *mfu * flops_per_token() / (flops_per_token() + half_square());
  return tokens_per_gpu.value_or(0) * flops_per_token() / peak;
}

Published read_published(const std::filesystem::path& file) {
  return read_strictly(
      file, published_schema,
      {"schema", "description", "training", "checkpoints", "idle", "restarts", "scaling", "beside_pytorch"},
      [](const Cursor& root) {
        Published published;
        if (const auto at = root.need("training"))
          for (const Cursor& each : at->elements()) published.training.push_back(read_run(each));
        published.checkpoints = read_share(root, "checkpoints", "share");
        published.idle = read_share(root, "idle", "share");
        std::optional<double> hours_lost;
        published.restarts = read_share(root, "restarts", "per_gpu_hour", &hours_lost);
        published.hours_lost = hours_lost.value_or(0);
        published.scaling = read_share(root, "scaling", "share");
        if (published.scaling.low <= 0 || published.scaling.high > 1)
          root.error("scaling must be above 0 and at most 1");
        if (const auto at = root.need("beside_pytorch"))
          for (const Cursor& each : at->elements()) published.beside_pytorch.push_back(read_ratio(each));
        return published;
      });
}

}  // namespace assay::report::sizing
