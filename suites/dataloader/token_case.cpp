#include "suites/dataloader/loader_case.h"

#include "harness/device/cpu/team.h"
#include "workloads/data/token_stream.h"

#include <algorithm>
#include <cstring>

namespace assay::dataloader {

namespace {

constexpr std::int64_t token_order_batches = 64;  // batches compared with those of one worker

class TokenCase final : public LoaderCase {
 public:
  explicit TokenCase(const Params& params)
      : LoaderCase(params, {.samples = token_batch,
                            .items = token_batch * window_length,
                            .compared = token_order_batches,
                            .sample = "window"}) {}
  ~TokenCase() override { stop(); }

  std::optional<std::string> prepare(Context& context) override {
    if (stage_ == Stage::decode || stage_ == Stage::augment)
      return fmt::format("tokens have no stage {}", word_of(stage_));
    const PathCheck check = check_path(Kind::token, path_);
    if (check.other_kind) return fmt::format("{}: holds images, not tokens", path_);
    if (stage_ == Stage::batch) {
      if (cold_) return "stage batch reads its input from memory, so there is no cache to be cold";
      return std::nullopt;
    }
    source_ = provide(Kind::token, path_, context, 1);
    const std::string file = file_of(*source_);
    if (!cold_) return not_warm(data::File::open(file).bytes());
    const std::string why = data::direct_read_problem(file);
    if (!why.empty()) return "cold reads are not possible: " + why;
    return std::nullopt;
  }

  void setup(Context& context) override {
    if (!source_) source_ = provide(Kind::token, path_, context, 1);
    set_ = std::make_unique<data::TokenSet>(file_of(*source_), window_length);
    stream_.set = set_.get();
    stream_.order = {context.inputs.seed, set_->windows(), context.comm.rank(), context.comm.size()};
    stream_.direct = cold_;
    if (!cold_) data::warm(data::File::open(set_->path()));
    start(context, fmt::format("i32 windows of {} tokens and their target", window_length));
    context.outputs.protocol.details["token_bytes"] = std::to_string(set_->token_bytes());
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    std::vector<Metric> metrics{window_throughput(measured, "throughput", 1, "tokens/s")};
    if (stage_ != Stage::batch)
      metrics.push_back(window_throughput(measured, "read_bandwidth", set_->token_bytes(), "B/s"));
    return metrics;
  }

 private:
  std::string file_of(const Source& source) const { return generated() ? source.path + "/tokens.bin" : source.path; }

  std::int64_t sample_bytes() const override { return stage_ == Stage::read ? 0 : data::window_bytes(window_length); }
  std::vector<std::string> files_read() const override {
    return stage_ == Stage::batch ? std::vector<std::string>{} : std::vector<std::string>{set_->path()};
  }

  void check(Checks& checks) override {
    if (stage_ == Stage::all) check_tokens(checks);
  }

  std::unique_ptr<data::Loader> make_loader(int workers) const override {
    data::LoaderOptions made = options(workers);
    made.grain = token_grain;
    return std::make_unique<data::Loader>(made, [this](int) {
      if (stage_ == Stage::read) return data::make_token_reader(stream_);
      return stage_ == Stage::batch ? data::make_token_batcher(stream_) : data::make_token_pipeline(stream_);
    });
  }

  // Compares every token of the first batches with the file, read by other code than the pipeline's.
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
        std::uint64_t wrong_in_row = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(window_length + 1); ++i) {
          std::uint32_t want = 0;
          std::memcpy(&want, raw.data() + i * width, width);
          wrong_in_row += static_cast<std::uint32_t>(tokens[i]) != want;
        }
        wrong += wrong_in_row;
        if (wrong_in_row) detail.push_back(fmt::format("window {}: {} tokens", batch.indices[row], wrong_in_row));
      }
    }
    checks.at_most("wrong_tokens", static_cast<double>(wrong), 0, detail);
  }

  std::unique_ptr<data::TokenSet> set_;
  data::TokenStream stream_;
};

}  // namespace

std::unique_ptr<Case> make_token_case(const Params& params) { return std::make_unique<TokenCase>(params); }

}  // namespace assay::dataloader
