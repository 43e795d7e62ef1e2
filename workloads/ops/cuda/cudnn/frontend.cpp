// Builds graphs by cuDNN's C++ front end: the only source that includes it.
#include "harness/core/error.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/cudnn/check.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/plan.h"
#include "workloads/ops/cuda/cudnn/pool.h"

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <array>
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

class GraphPlan final : public Plan {
 public:
  GraphPlan(std::shared_ptr<const fe::graph::Graph> graph, std::int64_t index, std::string name, std::size_t workspace)
      : graph_(std::move(graph)), index_(index), name_(std::move(name)), workspace_bytes_(workspace) {}

  std::string name() const override { return name_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

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
  std::shared_ptr<const fe::graph::Graph> graph_;
  std::int64_t index_;
  std::string name_;
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

// The graph's plans within the limits; if there are none, cuDNN's error is the reason.
Plans built(const std::shared_ptr<fe::graph::Graph>& graph, const Limits& limits) {
  const cudnnHandle_t handle = thread_handle();
  const auto refused = [](fe::error_t error) {
    return Plans{{}, fmt::format("{}: {}", version(), error.get_message())};
  };
  if (const auto error = graph->validate(); error.is_bad()) return refused(error);
  if (const auto error = graph->build_operation_graph(handle); error.is_bad()) return refused(error);
  const auto found = graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  if (found.is_bad()) return refused(found);
  graph->deselect_numeric_notes(unwanted_notes(limits));
  graph->deselect_workspace_greater_than(static_cast<std::int64_t>(limits.workspace_bytes));
  Plans result;
  result.why_not = version() + " has no engine for it";
  for (std::int64_t i = 0; i < graph->get_execution_plan_count() && result.plans.size() < limits.max_plans; ++i) {
    std::string name;
    if (graph->get_plan_name_at_index(i, name).is_bad()) name = fmt::format("plan {}", i);
    if (!limits.name.empty() && name != limits.name) continue;
    if (const auto error = graph->build_plan_at_index(i); error.is_bad()) {
      result.why_not = refused(error).why_not;
      continue;
    }
    std::int64_t bytes = 0;
    if (const auto error = graph->get_workspace_size_plan_at_index(i, bytes); error.is_bad()) continue;
    result.plans.push_back(std::make_shared<GraphPlan>(graph, i, std::move(name), static_cast<std::size_t>(bytes)));
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
  return built(graph, limits);
}

Plans attention_plans(const AttentionGraph& d, const Limits& limits) {
  return built(attention_graph(d, limits), limits);
}

Plans batch_norm_forward_plans(const BatchNormGraph& d, const Limits& limits) {
  return built(batch_norm_graph(d), limits);
}

Plans batch_norm_backward_plans(const BatchNormGradientGraph& d, const Limits& limits) {
  return built(batch_norm_graph(d), limits);
}

Plans average_pool_plans(const PoolDesc& d, const Limits& limits) { return built(average_pool_graph(d), limits); }

}  // namespace assay::ops::cudnn
