// The base of all loader cases: counts a loader's batches over a window and checks that their order does not depend on
// the number of workers.
#pragma once

#include "harness/plan/case.h"
#include "suites/dataloader/source.h"
#include "workloads/data/loader.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::dataloader {

inline constexpr int prefetch_batches = 4;

// Worker threads by the parameter: a number, or all cores.
int worker_count(const Params& params);
// Throughput over the wall time of the window, with the interval of its pieces.
Metric window_throughput(const Measurement& measurement, std::string name, double per_item, std::string unit);

class LoaderCase : public Case {
 public:
  void measure(Sampler& sampler) final;
  void verify(Checks& checks) final;

 protected:
  struct Batches {
    std::int64_t samples = 0;   // per batch
    std::int64_t items = 0;     // per batch: what throughput counts
    std::int64_t compared = 0;  // batches whose order is compared with that of one worker
    const char* sample = "";    // name of a sample in messages
  };

  LoaderCase(const Params& params, const Batches& batches);

  virtual std::unique_ptr<data::Loader> make_loader(int workers) const = 0;
  // The files that the stage reads; none if its input is in memory.
  virtual std::vector<std::string> files_read() const = 0;
  virtual void check(Checks& checks) = 0;
  // Bytes of a sample in a batch; 0: the stage leaves no samples.
  virtual std::int64_t sample_bytes() const = 0;
  // Called for each batch of the window.
  virtual void delivered(const data::Batch&) {}
  // Differences other than the order in a batch made again by one worker; adds a line for each to `detail`.
  virtual std::int64_t compare(const data::Batch& one, data::Loader& many, std::vector<std::string>& detail) const;

  bool generated() const { return path_ == generated_path; }
  data::LoaderOptions options(int workers) const;
  // Ends the loader's threads. The destructor of a class whose members make_loader() hands to them must call it.
  void stop() { loader_.reset(); }
  // Fills in protocol and flags and starts the loader. Called at the end of setup().
  void start(Context& context, std::string output);

  const std::string path_;
  const Stage stage_;
  const bool cold_;
  const int workers_;
  std::optional<Source> source_;

 private:
  void check_order(Checks& checks) const;
  // On a GPU, batches are copied to device memory, unless the stage leaves no samples.
  bool to_device() const;
  std::int64_t deliver_to_device();
  void check_device(Checks& checks);

  // Two device buffers alternate, so that one batch can be used while the next arrives.
  struct DeviceSlot {
    Buffer data;
    std::unique_ptr<Event> copied, consumed;
    bool used = false;
  };

  Batches batches_;
  std::array<DeviceSlot, 2> device_slots_;
  std::unique_ptr<Stream> copies_, consumer_;
  std::int64_t copied_batches_ = 0;
  const std::byte* last_ = nullptr;  // the last batch copied, in the loader's memory
  Context* context_ = nullptr;
  std::unique_ptr<data::Loader> loader_;
  std::vector<std::int64_t> first_indices_;
};

// Cases of kind=image.
inline constexpr std::int64_t image_batch = 32;
inline constexpr int image_size = 224;
inline constexpr std::int64_t decode_inputs = 1024;  // compressed images kept for stage=decode,
inline constexpr std::uint64_t decode_input_bytes = std::uint64_t{256} << 20;  // and the bytes that they may take
inline constexpr std::int64_t augment_inputs = 64;                             // decoded crops, or finished samples
// Share of the images seen that may be damaged before the case fails.
inline constexpr double corrupt_share_limit = 0.01;

std::unique_ptr<Case> make_image_case(const Params& params);

// Cases of kind=token.
inline constexpr std::int64_t token_batch = 64;  // windows
inline constexpr std::int64_t token_grain = 16;  // windows that a worker takes at a time

std::unique_ptr<Case> make_token_case(const Params& params);

}  // namespace assay::dataloader
