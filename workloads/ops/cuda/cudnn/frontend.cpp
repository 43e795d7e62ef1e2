// Builds graphs by cuDNN's C++ front end: the only source that includes it.
#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/cudnn/check.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/kept_plans.h"
#include "workloads/ops/cuda/cudnn/plan.h"
#include "workloads/ops/cuda/cudnn/pool.h"

#include <cudnn_frontend.h>

#include <array>
#include <mutex>
#include <set>
#include <unordered_map>

namespace assay::ops::cudnn {

namespace fe = cudnn_frontend;

void fail(cudnnStatus_t status, const char* call, const char* file, int line) {
  std::array<char, 1024> last{};
  cudnnGetLastErrorString(last.data(), last.size());
  throw Error(fmt::format("{} failed: {}{}{} at {}:{}", call, cudnnGetErrorString(status), last[0] ? ": " : "",
                          last.data(), file, line));
}

std::string version() {
  const std::size_t number = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

namespace {

// Handles are not thread-safe, so each thread has its own.
class Handle {
 public:
  Handle() { ASSAY_CUDNN(cudnnCreate(&handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cudnnDestroy(handle_); }
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

// For this process's GPU.
cudnnHandle_t thread_handle() {
  cuda::use_own_gpu();
  thread_local const Handle handle;
  return handle.get();
}

// For which GPU plans are: by default this process's.
struct Target {
  std::shared_ptr<const fe::DeviceProperties> described = nullptr;  // one that this process need not have
  int sm = 0;                                                       // its compute capability: 90
  std::string description = {};                                     // of either
};

std::string description_of(const fe::DeviceProperties& properties) {
  std::vector<std::uint8_t> text;
  if (auto error = properties.serialize(text); error.is_bad()) throw Error(error.get_message());
  while (!text.empty() && text.back() == 0) text.pop_back();
  return {text.begin(), text.end()};
}

Target& target() {
  static auto& target = *new Target;
  return target;
}

class GraphPlan final : public Plan {
 public:
  // `key` identifies the graph.
  GraphPlan(std::shared_ptr<fe::graph::Graph> graph, std::int64_t index, std::string name, std::string key,
            std::size_t workspace)
      : graph_(std::move(graph)),
        index_(index),
        name_(std::move(name)),
        key_(std::move(key)),
        workspace_bytes_(workspace) {}

  std::string name() const override { return name_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void keep() const override {
    std::vector<std::uint8_t> plan;
    // The front end writes the plan that was built last.
    if (graph_->build_plan_at_index(index_).is_bad() || graph_->serialize(plan, false).is_bad()) return;
    keep_plan(key_, name_, {reinterpret_cast<const char*>(plan.data()), plan.size()});
  }

  void run(cudaStream_t stream, std::span<const Operand> operands, void* workspace) const override {
    const cudnnHandle_t handle = thread_handle();
    ASSAY_CUDNN(cudnnSetStream(handle, stream));
    std::unordered_map<std::int64_t, void*> places;
    for (const Operand& operand : operands) places.emplace(operand.id, operand.data);
    if (fe::error_t error = graph_->execute_plan_at_index(handle, places, workspace, index_); error.is_bad()) {
      cudaGetLastError();  // or a later launch would report it
      throw RunError(fmt::format("cuDNN cannot run {}: {}", name_, error.get_message()));
    }
  }

 private:
  std::shared_ptr<fe::graph::Graph> graph_;
  std::int64_t index_;
  std::string name_, key_;
  std::size_t workspace_bytes_;
};

fe::DataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::tf32: return fe::DataType_t::FLOAT;
    case DType::bf16: return fe::DataType_t::BFLOAT16;
    case DType::fp16: return fe::DataType_t::HALF;
    default: throw Error(fmt::format("no cuDNN graphs of {} here", name_of(dtype)));
  }
}

std::vector<fe::NumericalNote_t> unwanted_notes(const Limits& limits) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION};
  if (limits.deterministic) notes.push_back(Note::NONDETERMINISTIC);
  if (limits.full_f32)
    for (const Note note :
         {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS, Note::FFT, Note::WINOGRAD_TILE_6x6, Note::WINOGRAD_TILE_13x13})
      notes.push_back(note);
  return notes;
}

// The first line of cuDNN's message; its other lines (30 to hundreds) are said once, so that the log has them.
std::string reason_of(fe::error_t error) {
  const std::string message = error.get_message();
  const std::string first = fmt::format("{}: {}", version(), std::string_view(message).substr(0, message.find('\n')));
  static std::mutex mutex;
  static auto& said = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (message.find('\n') != std::string::npos && said.insert(first).second) say("{}: {}", version(), message);
  return first;
}

// Tells whether a plan was left out because of the limits, which costs nothing, rather than after compiling failed.
bool is_deselected(fe::error_t error) {
  return error.get_message().find("Deselecting") != std::string::npos ||
         error.get_message().find("Skipping plan") != std::string::npos;
}

// All that a compiled plan is valid for. Empty if cuDNN cannot describe its GPU (before 9.8): then nothing is kept.
std::string key_on_device(const std::string& graph_key) {
  try {
    return fmt::format("{}, {}, {}", version(), device_description(), graph_key);
  } catch (const Error&) {
    return {};
  }
}

// What an earlier process kept of the plan of this name; null if it is not there, or not for this GPU.
std::shared_ptr<Plan> kept_plan(const std::string& key, const std::string& name) {
  const std::string text = read_kept_plan(key, name);
  if (text.empty()) return nullptr;
  auto graph = std::make_shared<fe::graph::Graph>();
  const std::vector<std::uint8_t> plan(text.begin(), text.end());
  std::int64_t bytes = 0;
  try {
    const Target& gpu = target();
    if (gpu.described) graph->set_device_properties(gpu.described);
    const auto error = gpu.described
                           ? graph->deserialize(plan)
                           : graph->deserialize(thread_handle(), nlohmann::json::from_ubjson(plan), false, false);
    if (error.is_bad() || graph->get_workspace_size(bytes).is_bad()) return nullptr;
  } catch (const nlohmann::json::exception&) {  // a broken file
    return nullptr;
  }
  return std::make_shared<GraphPlan>(graph, 0, name, key, static_cast<std::size_t>(bytes));
}

// The graph's plans within the limits; if there are none, cuDNN's error is the reason.
Plans built(const std::shared_ptr<fe::graph::Graph>& graph, const std::string& graph_key, const Limits& limits) {
  const Target& gpu = target();
  const std::string key = key_on_device(graph_key);
  if (!limits.name.empty())
    if (auto kept = kept_plan(key, limits.name)) return {{std::move(kept)}, {}};
  const auto refused = [](const fe::error_t& error) { return Plans{{}, reason_of(error)}; };
  if (gpu.described) graph->set_device_properties(gpu.described).set_sm_version(gpu.sm);
  if (const auto error = graph->validate(); error.is_bad()) return refused(error);
  const auto built = gpu.described ? graph->build_operation_graph() : graph->build_operation_graph(thread_handle());
  if (built.is_bad()) return refused(built);
  const auto found = graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  if (found.is_bad()) return refused(found);
  graph->deselect_numeric_notes(unwanted_notes(limits));
  graph->deselect_workspace_greater_than(static_cast<std::int64_t>(limits.workspace_bytes));
  Plans result;
  result.why_not = version() + " has no engine for it";
  std::size_t failures = 0;
  for (std::int64_t i = 0; i < graph->get_execution_plan_count() && result.plans.size() < limits.max_plans &&
                           failures < limits.max_failures;
       ++i) {
    std::string name;
    if (graph->get_plan_name_at_index(i, name).is_bad()) name = fmt::format("plan {}", i);
    if (!limits.name.empty() && name != limits.name) continue;
    std::int64_t bytes = 0;
    if (const auto error = graph->build_plan_at_index(i); error.is_bad()) {
      if (is_deselected(error)) continue;
      if (failures++ == 0) result.why_not = reason_of(error);
      continue;
    }
    if (graph->get_workspace_size_plan_at_index(i, bytes).is_bad()) continue;
    result.plans.push_back(
        std::make_shared<GraphPlan>(graph, i, std::move(name), key, static_cast<std::size_t>(bytes)));
  }
  if (!result.plans.empty()) result.why_not.clear();
  return result;
}

// Sizes in cuDNN's order (N, C, H, W); memory order (N, H, W, C), dense.
struct Layout {
  std::vector<std::int64_t> sizes, strides;
};
Layout images(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
}

std::shared_ptr<fe::graph::Tensor_attributes> input(fe::graph::Graph& graph, std::int64_t id, const char* name,
                                                    const Layout& layout, DType dtype) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(id)
                          .set_dim(layout.sizes)
                          .set_stride(layout.strides)
                          .set_data_type(data_type(dtype)));
}

void output(const std::shared_ptr<fe::graph::Tensor_attributes>& tensor, std::int64_t id, const char* name,
            const Layout& layout, DType dtype) {
  tensor->set_output(true).set_name(name).set_uid(id);
  tensor->set_dim(layout.sizes).set_stride(layout.strides).set_data_type(data_type(dtype));
}

#include "workloads/ops/cuda/cudnn/attention_graph.inc"
#include "workloads/ops/cuda/cudnn/batch_norm_graph.inc"
#include "workloads/ops/cuda/cudnn/pool_graph.inc"

}  // namespace

std::string device_description() {
  Target& gpu = target();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (gpu.description.empty()) {
    fe::DeviceProperties properties;
    properties.set_handle(thread_handle());
    if (auto error = properties.build(); error.is_bad()) throw Error(error.get_message());
    gpu.description = description_of(properties);
  }
  return gpu.description;
}

void plan_for(const std::string& description) {
  auto properties = std::make_shared<fe::DeviceProperties>();
  if (auto error = properties->deserialize({description.begin(), description.end()}); error.is_bad())
    throw Error(error.get_message());
  const auto member = nlohmann::json::parse(description).at("deviceVer");
  target() = {properties, member.get<int>() / 10, description};
}

Plans convolution_plans(const ConvolutionGraph& d, const Limits& limits) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_compute_data_type(fe::DataType_t::FLOAT).set_intermediate_data_type(fe::DataType_t::FLOAT);
  const Layout x_layout = images(d.n, d.h, d.w, d.c), w_layout = images(d.k, d.r, d.s, d.c / d.groups);
  const Layout y_layout = images(d.n, d.p(), d.q(), d.k);
  const auto with_window = [&](auto attributes) {
    attributes.set_padding({d.padding, d.padding}).set_stride({d.stride, d.stride}).set_dilation({1, 1});
    return attributes;
  };
  switch (d.pass) {
    case ConvolutionPass::forward: {
      const auto x = input(*graph, convolution_x, "x", x_layout, d.dtype),
                 w = input(*graph, convolution_w, "w", w_layout, d.dtype);
      output(graph->conv_fprop(x, w, with_window(fe::graph::Conv_fprop_attributes())), convolution_y, "y", y_layout,
             d.dtype);
      break;
    }
    case ConvolutionPass::backward_data: {
      const auto dy = input(*graph, convolution_y, "dy", y_layout, d.dtype),
                 w = input(*graph, convolution_w, "w", w_layout, d.dtype);
      output(graph->conv_dgrad(dy, w, with_window(fe::graph::Conv_dgrad_attributes())), convolution_x, "dx", x_layout,
             d.dtype);
      break;
    }
    case ConvolutionPass::backward_weights: {
      const auto dy = input(*graph, convolution_y, "dy", y_layout, d.dtype),
                 x = input(*graph, convolution_x, "x", x_layout, d.dtype);
      output(graph->conv_wgrad(dy, x, with_window(fe::graph::Conv_wgrad_attributes())), convolution_w, "dw", w_layout,
             d.weights());
      break;
    }
  }
  return built(graph, key_of(d), limits);
}

Plans attention_plans(const AttentionGraph& d, const Limits& limits) {
  return built(attention_graph(d, limits), key_of(d), limits);
}

Plans batch_norm_forward_plans(const BatchNormGraph& d, const Limits& limits) {
  return built(batch_norm_graph(d), key_of(d), limits);
}

Plans batch_norm_backward_plans(const BatchNormGradientGraph& d, const Limits& limits) {
  return built(batch_norm_graph(d), key_of(d), limits);
}

Plans average_pool_plans(const PoolDesc& d, const Limits& limits) {
  return built(average_pool_graph(d), key_of(d), limits);
}

}  // namespace assay::ops::cudnn
