#include "suites/dataloader/loader_case.h"

#include "harness/device/cpu/team.h"
#include "workloads/data/image_stream.h"
#include "workloads/data/reference.h"
#include "workloads/data/synthetic_image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace assay::dataloader {

namespace {

constexpr std::int64_t image_order_batches = 8;  // batches compared with those of one worker
constexpr std::int64_t pixel_samples = 8;        // compared with the reference
constexpr std::size_t scanned_images = 1024;     // fully decoded after the measurement, to find damage
constexpr double level_limit = 1.0;              // largest difference of a value, of 255
constexpr double scaled_level_limit = 4.0;       // mean, if the decoder scaled in the frequency domain

class ImageCase final : public LoaderCase {
 public:
  explicit ImageCase(const Params& params)
      : LoaderCase(params,
                   {.samples = image_batch, .items = image_batch, .compared = image_order_batches, .sample = "image"}) {
  }
  ~ImageCase() override { stop(); }

  std::optional<std::string> prepare(Context& context) override {
    const PathCheck check = check_path(Kind::image, path_);
    if (check.other_kind) return fmt::format("{}: holds tokens, not images", path_);
    if (!reads()) {
      if (cold_)
        return fmt::format("stage {} reads its input from memory, so there is no cache to be cold", word_of(stage_));
      return std::nullopt;
    }
    source_ = provide(Kind::image, path_, context, threads());
    set_.emplace(data::ImageSet::open(source_->path));
    if (!cold_) return not_warm(set_->total_bytes());
    const std::string why = data::direct_read_problem(set_->files().front());
    if (!why.empty()) return "cold reads are not possible: " + why;
    return std::nullopt;
  }

  void setup(Context& context) override {
    if (!source_) source_ = provide(Kind::image, path_, context, threads());
    if (!set_) set_.emplace(data::ImageSet::open(source_->path));
    stream_.set = &*set_;
    stream_.order = {context.inputs.seed, set_->size(), context.comm.rank(), context.comm.size()};
    stream_.size = image_size;
    stream_.direct = cold_;
    stream_.bad = &bad_;
    stream_.kernels = &data::best_resize_kernels();
    if (context.inject(Fault::corrupt_image)) stream_.injected = stream_.order.image(0);
    if (!cold_ && reads())
      for (const std::string& file : set_->files()) data::warm(data::File::open(file));
    if (stage_ == Stage::decode) inputs_ = data::load_compressed(stream_, decode_inputs, decode_input_bytes);
    if (stage_ == Stage::augment) inputs_ = data::load_crops(stream_, augment_inputs);
    if (stage_ == Stage::batch) inputs_ = data::load_samples(stream_, augment_inputs);
    describe(context);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    std::vector<Metric> metrics{window_throughput(measured, "throughput", 1, "img/s")};
    const double per_image = items_ > 0 ? bytes_ / items_ : 0;
    if (reads()) metrics.push_back(window_throughput(measured, "read_bandwidth", per_image, "B/s"));
    if (stage_ == Stage::decode || stage_ == Stage::all)
      metrics.push_back(window_throughput(measured, "compressed_bandwidth_per_core",
                                          per_image / (threads() * stream_.order.world), "B/s"));
    return metrics;
  }

 private:
  bool reads() const { return stage_ == Stage::read || stage_ == Stage::all; }
  // Workers that run at the same time.
  int threads() const { return std::min(workers_, static_cast<int>(cpu::rank_cpus().size())); }

  std::int64_t sample_bytes() const override {
    return stage_ == Stage::batch || stage_ == Stage::all ? data::sample_bytes(image_size) : 0;
  }
  std::vector<std::string> files_read() const override { return reads() ? set_->files() : std::vector<std::string>{}; }

  void delivered(const data::Batch& batch) override {
    bytes_ += static_cast<double>(batch.bytes);
    items_ += static_cast<double>(image_batch);
  }

  void check(Checks& checks) override {
    if (stage_ == Stage::all) check_pixels(checks);
    scan();
    report_damage(checks);
  }

  std::unique_ptr<data::Loader> make_loader(int workers) const override {
    return std::make_unique<data::Loader>(options(workers), [this](int) { return make_worker(); });
  }

  std::unique_ptr<data::SampleMaker> make_worker() const {
    if (stage_ == Stage::read) return data::make_image_reader(stream_);
    if (stage_ == Stage::decode) return data::make_image_decoder(stream_, inputs_);
    if (stage_ == Stage::augment) return data::make_image_augmenter(stream_, inputs_);
    if (stage_ == Stage::batch) return data::make_image_batcher(stream_, inputs_);
    return data::make_image_pipeline(stream_);
  }

  void describe(Context& context) {
    start(context, fmt::format("f32 NHWC {0} x {0}", image_size));
    context.outputs.protocol.batching = Protocol::Batching::batched;
    context.outputs.protocol.details["isa"] = stream_.kernels->isa;
    context.outputs.labels["decoder"] = data::jpeg_library();
    context.outputs.conditions["images"] = std::to_string(set_->size());
    context.outputs.conditions["mean_bytes"] = std::to_string(set_->total_bytes() / set_->size());
  }

  // Compares the pixels of the first two batches bit by bit.
  std::int64_t compare(const data::Batch& one, data::Loader& many, std::vector<std::string>& detail) const override {
    if (one.number >= 2 || (stage_ != Stage::batch && stage_ != Stage::all)) return 0;
    const data::Batch& again = many.next();
    const auto bytes = static_cast<std::size_t>(data::sample_bytes(image_size));
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(image_batch); ++i) {
      if (std::memcmp(again.data + i * bytes, one.data + i * bytes, bytes) == 0) continue;
      ++wrong;
      detail.push_back(fmt::format("batch {} sample {}: pixels depend on the number of workers", one.number, i));
    }
    return wrong;
  }

  // Compares samples with the reference: decode everything, crop, resize in double.
  void check_pixels(Checks& checks) {
    const auto loader = make_loader(workers_);
    const data::Batch& batch = loader->next();
    data::ImageReader reader(*set_, false);
    const Rng rng(stream_.order.seed, "augmentation");
    double worst = 0, worst_scaled = 0;
    bool scaled_seen = false;
    std::vector<std::string> detail, scaled_detail;
    for (std::int64_t position = 0; position < pixel_samples; ++position) {
      const std::int64_t image = batch.indices[static_cast<std::size_t>(position)];
      const auto bytes = reader.read(static_cast<std::size_t>(image));
      std::string error = "cannot be read";
      const data::ReferenceImage whole = bytes ? data::reference_decode(*bytes, error) : data::ReferenceImage{};
      if (whole.pixels.empty()) {
        bad_.add(image, error);  // damaged outside the crop: counted by report_damage()
        continue;
      }
      const data::Augmentation drawn =
          data::draw_augmentation(rng, stream_.order.place(position), whole.width, whole.height);
      const auto* pixels = reinterpret_cast<const float*>(batch.data + position * data::sample_bytes(image_size));
      const auto [maximum, mean] = difference(pixels, data::reference_resize(whole, drawn, image_size));
      const bool scaled = data::decode_denominator(drawn.crop, image_size) > 1;
      const double error_levels = scaled ? mean : maximum;
      (scaled ? worst_scaled : worst) = std::max(scaled ? worst_scaled : worst, error_levels);
      scaled_seen = scaled_seen || scaled;
      if (error_levels > (scaled ? scaled_level_limit : level_limit))
        (scaled ? scaled_detail : detail)
            .push_back(fmt::format("{}: {:.2f} levels", set_->name(static_cast<std::size_t>(image)), error_levels));
    }
    checks.at_most("pixel_error_levels", worst, level_limit, detail);
    if (scaled_seen) checks.at_most("scaled_mean_error_levels", worst_scaled, scaled_level_limit, scaled_detail);
  }

  // Maximum and mean difference in levels of 255.
  static std::pair<double, double> difference(const float* pixels, const std::vector<double>& reference) {
    const data::Normalization norm;
    double maximum = 0, sum = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const double level = 255.0 * (static_cast<double>(pixels[i]) * norm.deviation[i % 3] + norm.mean[i % 3]);
      const double error = std::abs(level - reference[i]);
      maximum = error > maximum || std::isnan(error) ? error : maximum;
      sum += error;
    }
    return {maximum, sum / static_cast<double>(reference.size())};
  }

  // Crops read only part of each image: decodes whole images to find damage elsewhere.
  void scan() {
    data::ImageReader reader(*set_, false);
    data::JpegDecoder decoder;
    data::AlignedBytes pixels;
    scanned_ = std::min(set_->size(), scanned_images);
    for (std::size_t place = 0; place < scanned_; ++place) {
      const std::int64_t image =
          static_cast<std::int64_t>(data::Shuffle(stream_.order.seed, 0, set_->size()).at(place));
      const auto bytes = stream_.read(reader, image);
      if (!bytes) {
        bad_.add(image, reader.error());
      } else if (!decoder.open(*bytes) || !read_all(decoder, pixels)) {
        bad_.add(image, decoder.error());
      }
    }
  }

  static bool read_all(data::JpegDecoder& decoder, data::AlignedBytes& pixels) {
    if (!decoder.start({0, 0, decoder.width(), decoder.height()})) return false;
    pixels.reserve(static_cast<std::size_t>(decoder.row_pixels()) * 4 + 64);
    std::uint8_t* row[1] = {pixels.as<std::uint8_t>()};
    for (int y = 0; y < decoder.rows(); ++y)
      if (!decoder.read(row, 1)) return false;
    return true;
  }

  void report_damage(Checks& checks) {
    const auto bad = bad_.all();
    std::vector<std::string> detail;
    for (const auto& [image, reason] : bad)
      detail.push_back(fmt::format("{}: {}", set_->name(static_cast<std::size_t>(image)), reason));
    // All images if the stream went round once, else at least the images delivered or scanned.
    const double seen = std::max(static_cast<double>(scanned_), std::min(items_, static_cast<double>(set_->size())));
    checks.at_most("corrupt_images_share", static_cast<double>(bad.size()) / seen, corrupt_share_limit, detail);
    checks.at_most("damaged_archives", static_cast<double>(set_->damaged_archives().size()), 0,
                   set_->damaged_archives());
  }

  std::optional<data::ImageSet> set_;
  data::BadImages bad_;
  data::ImageStream stream_;
  data::StageInputs inputs_;
  std::size_t scanned_ = 0;
  double bytes_ = 0;
  double items_ = 0;
};

}  // namespace

std::unique_ptr<Case> make_image_case(const Params& params) { return std::make_unique<ImageCase>(params); }

}  // namespace assay::dataloader
