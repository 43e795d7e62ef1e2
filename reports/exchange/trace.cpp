// A run's Chrome trace, gzipped (RFC 1952): chrome://tracing and Perfetto read it so.
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "reports/exchange/formats.h"

#include <fmt/format.h>
#include <zlib.h>

#include <filesystem>
#include <limits>
#include <system_error>

namespace assay::report {

namespace {

std::string gzipped(std::string text) {
  constexpr int gzip_window = 15 + 16;  // the largest window, with gzip's header
  constexpr int memory = 8;             // zlib's default
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("export: zlib cannot start");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw Error(fmt::format("export: zlib failed with {}", code));
  return out;
}

}  // namespace

std::string trace_text(const RunSet& runs) {
  // What zlib takes at once.
  constexpr std::uintmax_t max_bytes = std::numeric_limits<uInt>::max() / 2;
  if (runs.directories() != 1) throw UsageError("export trace: takes one run directory");
  const std::filesystem::path file = runs.runs().front().dir / "trace.json";
  std::error_code none;
  if (!std::filesystem::exists(file, none))
    throw UsageError(fmt::format("export trace: no {}: `assay run --trace` writes one", file.string()));
  return gzipped(read_whole(file, max_bytes));
}

}  // namespace assay::report
