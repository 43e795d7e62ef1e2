#include "suites/dataloader/token_case.h"

#include "harness/device/cpu/team.h"
#include "suites/dataloader/image_case.h"
#include "suites/dataloader/source.h"
#include "workloads/data/token_stream.h"

#include <algorithm>
#include <cstring>

namespace assay::dataloader {

namespace {

constexpr std::int64_t order_batches = 64;  // compared with one worker's

class TokenCase final : public Case {
 public:
  explicit TokenCase(const Params& params)
      : path_(params.text("path")),
        stage_(params.text("stage")),
        cold_(params.text("cache") == "cold"),
        workers_(worker_count(params)) {}

  std::optional<std::string> skip_reason(const Context& context) const override {
    if (stage_ == "decode" || stage_ == "augment") return fmt::format("tokens have no stage {}", stage_);
    const PathCheck check = check_path("token", path_);
    if (check.other_kind) return fmt::format("{}: holds images, not tokens", path_);
    if (stage_ == "batch") {
      if (cold_) return "stage batch takes its input from memory: no cache to be cold";
      return std::nullopt;
    }
    source_ = provide("token", path_, context, 1);
    const std::string file = file_of(*source_);
    if (!cold_) return not_warm(data::File::open(file).bytes());
    const std::string why = data::no_direct_reads(file);
    if (!why.empty()) return "cold reads cannot be had: " + why;
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    if (!source_) source_ = provide("token", path_, context, 1);
    set_ = std::make_unique<data::TokenSet>(file_of(*source_), window_length);
    stream_.set = set_.get();
    stream_.order = {context.seed, set_->windows(), context.comm.rank(), context.comm.size()};
    stream_.direct = cold_;
    if (!cold_) data::warm(data::File::open(set_->path()));
    Protocol& protocol = context.protocol;
    protocol.form = "window";
    protocol.data = path_ == generated_path ? "generated" : "files";
    protocol.cache = stage_ == "batch" ? "none" : cold_ ? "cold" : "warm";
    protocol.warmup_seconds = std::max(protocol.warmup_seconds, 0.3);
    protocol.details["batch"] = std::to_string(token_batch);
    protocol.details["prefetch"] = std::to_string(prefetch_batches);
    protocol.details["output"] = fmt::format("i32 windows of {} tokens and their target", window_length);
    protocol.details["data_set"] = source_->data_set;
    protocol.details["token_bytes"] = std::to_string(set_->token_bytes());
    if (cold_) protocol.details["cold_by"] = "O_DIRECT";
    if (!source_->remark.empty()) context.flags.push_back(source_->remark);
    if (workers_ > static_cast<int>(cpu::rank_cpus().size())) context.flags.push_back("oversubscribed");
    loader_ = make_loader(workers_);
  }

  void measure(Sampler& sampler) override {
    sampler.window([this] {
      const data::Batch& batch = loader_->next();
      if (batch.number < order_batches)
        first_indices_.insert(first_indices_.end(), batch.indices.begin(), batch.indices.end());
      return token_batch * window_length;
    });
  }

  void verify(Checks& checks) override {
    loader_.reset();
    if (!cold_ && stage_ != "batch") flag_eviction({set_->path()}, *context_);
    check_order(checks);
    if (stage_ == "all") check_tokens(checks);
    loader_ = make_loader(workers_);
    first_indices_.clear();
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    std::vector<Metric> metrics{window_throughput(measured, 1, "tokens/s")};
    metrics.back().name = "throughput";
    if (stage_ != "batch") {
      metrics.push_back(window_throughput(measured, set_->token_bytes(), "B/s"));
      metrics.back().name = "read_bandwidth";
    }
    return metrics;
  }

 private:
  std::string file_of(const Source& source) const {
    return path_ == generated_path ? source.path + "/tokens.bin" : source.path;
  }

  std::unique_ptr<data::Loader> make_loader(int workers) {
    data::LoaderOptions options;
    options.workers = workers;
    options.cpus = cpu::rank_cpus();
    options.batch = token_batch;
    options.grain = token_grain;
    options.prefetch = prefetch_batches;
    if (stage_ != "read") options.sample_bytes = data::window_bytes(window_length);
    return std::make_unique<data::Loader>(options, [this](int) {
      if (stage_ == "read") return data::make_token_reader(stream_);
      return stage_ == "batch" ? data::make_token_batcher(stream_) : data::make_token_pipeline(stream_);
    });
  }

  void check_order(Checks& checks) {
    const auto one = make_loader(1);
    std::vector<std::string> detail;
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < first_indices_.size();) {
      for (const std::int64_t want : one->next().indices) {
        if (i == first_indices_.size()) break;
        if (first_indices_[i] != want) {
          ++wrong;
          detail.push_back(fmt::format("sample {}: window {} instead of {}", i, first_indices_[i], want));
        }
        ++i;
      }
    }
    checks.at_most("wrong_order", static_cast<double>(wrong), 0, detail);
  }

  // Every token of the first batches against the file, read another way than the pipeline's.
  void check_tokens(Checks& checks) {
    const auto loader = make_loader(workers_);
    const data::File file = data::File::open(set_->path());
    const auto width = static_cast<std::size_t>(set_->token_bytes());
    std::vector<std::byte> raw(static_cast<std::size_t>(window_length + 1) * width);
    std::uint64_t wrong = 0;
    std::vector<std::string> detail;
    for (int b = 0; b < 4; ++b) {
      const data::Batch& batch = loader->next();
      for (std::size_t row = 0; row < static_cast<std::size_t>(token_batch); ++row) {
        file.read(raw.data(), raw.size(), set_->offset(static_cast<std::uint64_t>(batch.indices[row])));
        const auto* tokens =
            reinterpret_cast<const std::int32_t*>(batch.data) + row * static_cast<std::size_t>(window_length + 1);
        std::uint64_t wrong_here = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(window_length + 1); ++i) {
          std::uint32_t want = 0;
          std::memcpy(&want, raw.data() + i * width, width);
          wrong_here += static_cast<std::uint32_t>(tokens[i]) != want;
        }
        wrong += wrong_here;
        if (wrong_here) detail.push_back(fmt::format("window {}: {} tokens", batch.indices[row], wrong_here));
      }
    }
    checks.at_most("wrong_tokens", static_cast<double>(wrong), 0, detail);
  }

  std::string path_;
  std::string stage_;
  bool cold_;
  int workers_;
  Context* context_ = nullptr;
  mutable std::optional<Source> source_;
  std::unique_ptr<data::TokenSet> set_;
  data::TokenStream stream_;
  std::unique_ptr<data::Loader> loader_;
  std::vector<std::int64_t> first_indices_;
};

}  // namespace

std::unique_ptr<Case> make_token_case(const Params& params) { return std::make_unique<TokenCase>(params); }

}  // namespace assay::dataloader
