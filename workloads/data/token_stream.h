// The endless stream of token windows, reshuffled each epoch, and the workers that process it.
#pragma once

#include "workloads/data/image_stream.h"
#include "workloads/data/token_set.h"

namespace assay::data {

struct TokenStream {
  const TokenSet* set = nullptr;
  StreamOrder order;    // its `images` are windows
  bool direct = false;  // bypass the page cache, else use the mapping
};

// Bytes of one delivered window: length + 1 tokens of int32.
inline std::int64_t window_bytes(std::int64_t length) { return (length + 1) * 4; }

// Copies or reads each window into the worker's own memory.
std::unique_ptr<SampleMaker> make_token_reader(const TokenStream& stream);
// Widens windows from the worker's cache-sized pool into the batch.
std::unique_ptr<SampleMaker> make_token_batcher(const TokenStream& stream);
// Both: from the file into the batch.
std::unique_ptr<SampleMaker> make_token_pipeline(const TokenStream& stream);

}  // namespace assay::data
