// Token embedding. Forward reads and writes one row per token: with positions (and types) in the caches, tokens x width
// x (size of table + size of y) bytes are the floor. Backward reads dy once (and once more for positions and for
// types), writes the gradient of each looked-up row once, and clears the others if it does not accumulate.
#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/token_order.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;

template <typename T, typename Table>
struct Lookup {
  const std::int32_t* ids;
  const std::int32_t* type_ids;
  const Table* table;
  const Table* positions;  // null: none
  const Table* types;      // null: none
  T* y;
  std::int64_t tokens;
  std::int64_t seq;
  std::int64_t width;
};

// A thread adds N columns of one token.
template <typename T, typename Table, int N>
__global__ void __launch_bounds__(threads) embedding(Lookup<T, Table> p) {
  const std::int64_t places = p.width / N, count = p.tokens * places;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Quotient at = divide(i, places);
    const std::int64_t token = at.whole, column = at.rest * N;
    const Packed<Table, N> row = load<N>(p.table + std::int64_t{p.ids[token]} * p.width + column);
    Packed<Table, N> position{}, type{};
    if (p.positions) position = load<N>(p.positions + divide(token, p.seq).rest * p.width + column);
    if (p.types) type = load<N>(p.types + std::int64_t{p.type_ids[token]} * p.width + column);
    Vector<float, N> value = widened(row);
    const auto add = [&](const Packed<Table, N>& other) {
#pragma unroll
      for (int k = 0; k < N; ++k) value.lane[k] += widen(other[k]);
    };
    if (p.positions) add(position);
    if (p.types) add(type);
    store_narrow(p.y + token * p.width + column, value);
  }
}

// Gradients of a table's rows: tokens are sorted by id and cut into tiles; each block sums its tile's rows of dy, id by
// id. An id whose tokens span several tiles has a partial sum in each; a second kernel's block for the first of these
// tiles adds them.
constexpr int tile = 64;
constexpr int row_threads = 128;
constexpr int rows_ahead = 4;  // rows of dy in flight per thread

template <typename T, typename G>
struct RowSums {
  const std::int32_t* order;
  const std::int32_t* ids;
  const T* dy;
  G* gradient;      // rows without tokens are already zero, or accumulate
  float* partials;  // (tiles, a tile's first and last id, width)
  std::int64_t tokens;
  std::int64_t width;
  bool accumulate;
};

template <int N, typename G>
__device__ __forceinline__ void put(G* at, Vector<float, N> sum, bool accumulate) {
  if (accumulate) {
    const Vector<float, N> old = load_wide<N>(at);
#pragma unroll
    for (int k = 0; k < N; ++k) sum.lane[k] += old.lane[k];
  }
  store_narrow(at, sum);
}

template <typename T, typename G, int N>
__global__ void __launch_bounds__(row_threads) sum_tiles(RowSums<T, G> p) {
  __shared__ std::int32_t tokens[tile], ids[tile + 2];  // ids: one before and one after the tile
  const std::int64_t begin = std::int64_t{blockIdx.x} * tile;
  const int count = static_cast<int>(min(std::int64_t{tile}, p.tokens - begin));
  for (int i = static_cast<int>(threadIdx.x); i < count + 2; i += row_threads) {
    const std::int64_t at = begin + i - 1;
    const std::int32_t token = at >= 0 && at < p.tokens ? p.order[at] : -1;
    ids[i] = token >= 0 ? p.ids[token] : -1;
    if (i > 0 && i <= count) tokens[i - 1] = token;
  }
  __syncthreads();
  const std::int64_t column = (std::int64_t{blockIdx.y} * row_threads + threadIdx.x) * N;
  if (column >= p.width) return;
  const auto id_of = [&](int i) { return ids[i + 1]; };
  const std::int32_t before = ids[0], after = ids[count + 1];
  float* const partial = p.partials + std::int64_t{blockIdx.x} * 2 * p.width + column;
  Vector<float, N> sum = {};
  for (int i = 0; i < count; i += rows_ahead) {
    Packed<T, N> row[rows_ahead];
#pragma unroll
    for (int k = 0; k < rows_ahead; ++k)
      if (i + k < count) row[k] = load<N>(p.dy + std::int64_t{tokens[i + k]} * p.width + column);
#pragma unroll
    for (int k = 0; k < rows_ahead; ++k)
      if (i + k < count) {
        const Vector<float, N> value = widened(row[k]);
#pragma unroll
        for (int lane = 0; lane < N; ++lane) sum.lane[lane] += value.lane[lane];
        const std::int32_t id = id_of(i + k);
        const bool last = i + k == count - 1;
        if (!last && id_of(i + k + 1) == id) continue;
        // The end of an id's tokens in this tile.
        if (id == before)
          store_narrow(partial, sum);
        else if (last && id == after)
          store_narrow(partial + p.width, sum);
        else
          put(p.gradient + std::int64_t{id} * p.width + column, sum, p.accumulate);
        sum = {};
      }
  }
}

// Adds the sums of ids that begin in a tile and end in a later one.
template <typename T, typename G, int N>
__global__ void __launch_bounds__(row_threads) join_tiles(RowSums<T, G> p) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * tile, end = begin + tile;
  if (end >= p.tokens) return;
  const auto id_at = [&](std::int64_t i) { return p.ids[p.order[i]]; };
  const std::int32_t id = id_at(end);
  if (id_at(end - 1) != id || (begin > 0 && id_at(begin - 1) == id)) return;
  const std::int64_t column = (std::int64_t{blockIdx.y} * row_threads + threadIdx.x) * N;
  if (column >= p.width) return;
  const float* partial = p.partials + std::int64_t{blockIdx.x} * 2 * p.width + column;
  Vector<float, N> sum = load_wide<N>(partial + p.width);
  for (std::int64_t next = end; next < p.tokens && id_at(next) == id; next += tile) {
    partial += 2 * p.width;
    const Vector<float, N> value = load_wide<N>(partial);
#pragma unroll
    for (int lane = 0; lane < N; ++lane) sum.lane[lane] += value.lane[lane];
  }
  put(p.gradient + std::int64_t{id} * p.width + column, sum, p.accumulate);
}

// Positions: sums over the batch for each element of a sample.
template <typename T, typename G, int N>
__global__ void __launch_bounds__(threads)
    sum_positions(const T* dy, G* gradient, std::int64_t batch, std::int64_t elements, bool accumulate) {
  const std::int64_t count = elements / N;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    Vector<float, N> sum = {};
    for (std::int64_t b = 0; b < batch; b += rows_ahead) {
      Packed<T, N> row[rows_ahead];
#pragma unroll
      for (int k = 0; k < rows_ahead; ++k)
        if (b + k < batch) row[k] = load<N>(dy + (b + k) * elements + i * N);
#pragma unroll
      for (int k = 0; k < rows_ahead; ++k)
        if (b + k < batch) {
#pragma unroll
          for (int lane = 0; lane < N; ++lane) sum.lane[lane] += widen(row[k][lane]);
        }
    }
    put(gradient + i * N, sum, accumulate);
  }
}

// What `make.operator()<T, Table>()` returns for the types of activations and of a table; null for others.
template <typename Enqueue, typename Make>
Enqueue by_types(DType dtype, DType table, const Make& make) {
  const auto is = [&](DType one, DType other) { return dtype == one && table == other; };
  if (is(DType::f32, DType::f32)) return make.template operator()<float, float>();
  if (is(DType::bf16, DType::f32)) return make.template operator()<__nv_bfloat16, float>();
  if (is(DType::bf16, DType::bf16)) return make.template operator()<__nv_bfloat16, __nv_bfloat16>();
  if (is(DType::fp16, DType::f32)) return make.template operator()<__half, float>();
  if (is(DType::fp16, DType::fp16)) return make.template operator()<__half, __half>();
  return nullptr;
}

class CudaEmbeddingForward final : public CudaOp<EmbeddingForward> {
 public:
  using Enqueue = void (*)(const EmbeddingDesc&, const Args&, cudaStream_t);

  CudaEmbeddingForward(Device& device, const EmbeddingDesc& desc) : CudaOp(device), d_(desc), enqueue_(choose(desc)) {}

  void run(Stream& stream, const Args& args) override { enqueue_(d_, args, native(stream)); }

  // Null if there is no such kernel.
  static Enqueue choose(const EmbeddingDesc& d) {
    return by_types<Enqueue>(d.dtype, d.parameters, []<typename T, typename Table>() { return &enqueue<T, Table>; });
  }

 private:
  template <typename T, typename Table>
  static void enqueue(const EmbeddingDesc& d, const Args& args, cudaStream_t stream) {
    constexpr int N = lanes<T>;
    const Lookup<T, Table> lookup{.ids = args.ids,
                                  .type_ids = args.type_ids,
                                  .table = static_cast<const Table*>(args.table),
                                  .positions = d.positions ? static_cast<const Table*>(args.positions) : nullptr,
                                  .types = d.types > 0 ? static_cast<const Table*>(args.types) : nullptr,
                                  .y = static_cast<T*>(args.y),
                                  .tokens = d.batch * d.seq,
                                  .seq = d.seq,
                                  .width = d.width};
    const bool whole = d.width % N == 0 && aligned(lookup.table, lookup.positions, lookup.types, lookup.y);
    cuda::launch(whole ? embedding<T, Table, N> : embedding<T, Table, 1>,
                 blocks_for(lookup.tokens * (d.width / (whole ? N : 1)), threads), threads, 0, stream, lookup);
  }

  EmbeddingDesc d_;
  Enqueue enqueue_;
};

class CudaEmbeddingBackward final : public CudaOp<EmbeddingBackward> {
 public:
  using Enqueue = void (*)(const CudaEmbeddingBackward&, const Args&, cudaStream_t);

  CudaEmbeddingBackward(Device& device, const EmbeddingDesc& desc)
      : CudaOp(device), d_(desc), tokens_(desc.batch * desc.seq), enqueue_(choose(desc)) {}

  // The order of the tokens, then partial sums of ids that span tiles.
  std::size_t workspace_bytes() const override {
    return token_order_bytes(tokens_) + static_cast<std::size_t>(tiles() * 2 * d_.width) * sizeof(float);
  }

  void run(Stream& stream, const Args& args) override { enqueue_(*this, args, native(stream)); }

  // Null if there is no such kernel.
  static Enqueue choose(const EmbeddingDesc& d) {
    return by_types<Enqueue>(d.dtype, d.gradient, []<typename T, typename G>() { return &enqueue<T, G>; });
  }

 private:
  std::int64_t tiles() const { return (tokens_ + tile - 1) / tile; }

  template <typename T, typename G, int N>
  void sum_rows(const Args& args, const std::int32_t* ids, void* gradient, std::int64_t bound, bool accumulate,
                cudaStream_t stream) const {
    if (!accumulate)
      ASSAY_CUDA(cudaMemsetAsync(gradient, 0, static_cast<std::size_t>(bound * d_.width) * sizeof(G), stream));
    const RowSums<T, G> sums{
        .order = enqueue_token_order(ids, tokens_, bound, args.workspace, stream),
        .ids = ids,
        .dy = static_cast<const T*>(args.dy),
        .gradient = static_cast<G*>(gradient),
        .partials = reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + token_order_bytes(tokens_)),
        .tokens = tokens_,
        .width = d_.width,
        .accumulate = accumulate};
    const dim3 grid(static_cast<unsigned>(tiles()), blocks_for(d_.width, row_threads * N));
    cuda::launch(sum_tiles<T, G, N>, grid, row_threads, 0, stream, sums);
    if (tiles() > 1) cuda::launch(join_tiles<T, G, N>, grid, row_threads, 0, stream, sums);
  }

  template <typename T, typename G, int N>
  void sum_all(const Args& args, cudaStream_t stream) const {
    sum_rows<T, G, N>(args, args.ids, args.dtable, d_.vocabulary, d_.accumulate_table, stream);
    if (d_.types > 0) sum_rows<T, G, N>(args, args.type_ids, args.dtypes, d_.types, d_.accumulate_others, stream);
    if (d_.positions)
      cuda::launch(sum_positions<T, G, N>, blocks_for(d_.seq * d_.width / N, threads), threads, 0, stream,
                   static_cast<const T*>(args.dy), static_cast<G*>(args.dpositions), d_.batch, d_.seq * d_.width,
                   d_.accumulate_others);
  }

  template <typename T, typename G>
  static void enqueue(const CudaEmbeddingBackward& op, const Args& args, cudaStream_t stream) {
    constexpr int N = lanes<T>;
    const bool whole = op.d_.width % N == 0 &&
                       aligned(args.dy, args.dtable, args.workspace, op.d_.positions ? args.dpositions : nullptr,
                               op.d_.types > 0 ? args.dtypes : nullptr);
    if (whole)
      op.sum_all<T, G, N>(args, stream);
    else
      op.sum_all<T, G, 1>(args, stream);
  }

  EmbeddingDesc d_;
  std::int64_t tokens_;
  Enqueue enqueue_;
};

std::string refusal(const EmbeddingDesc& d, bool has, DType other) {
  if (d.batch * d.seq > 0x7fffffff) return "tokens are counted in 31 bits";
  if (d.width > (std::int64_t{1} << 22)) return "the cuda backend's embeddings have up to 2^22 columns";
  if (has) return {};
  return "the cuda backend has no embedding of " + std::string(name_of(d.dtype)) + " beside " +
         std::string(name_of(other));
}

}  // namespace

template <>
Made<EmbeddingForward> make_cuda(Device& device, const EmbeddingDesc& desc) {
  return make_unless<EmbeddingForward, CudaEmbeddingForward>(
      refusal(desc, CudaEmbeddingForward::choose(desc) != nullptr, desc.parameters), device, desc);
}

template <>
Made<EmbeddingBackward> make_cuda(Device& device, const EmbeddingDesc& desc) {
  return make_unless<EmbeddingBackward, CudaEmbeddingBackward>(
      refusal(desc, CudaEmbeddingBackward::choose(desc) != nullptr, desc.gradient), device, desc);
}

}  // namespace assay::ops
