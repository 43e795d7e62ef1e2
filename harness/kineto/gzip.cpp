#include "harness/kineto/gzip.h"

#include "harness/core/error.h"
#include "harness/core/files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <memory>
#include <utility>

namespace assay::kineto {
namespace {

constexpr std::size_t part_bytes = 256u << 10;

class Inflater {
 public:
  Inflater(Source bytes, std::string file) : bytes_(std::move(bytes)), file_(std::move(file)) {}
  ~Inflater() {
    if (compressed_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool more(std::string& text) {
    if (!begun_) begin();
    if (!compressed_) {
      if (in_.empty()) return bytes_(text);
      text += std::exchange(in_, {});
      return true;
    }
    const std::size_t had = text.size();
    while (text.size() == had && inflate_part(text)) continue;
    return text.size() > had;
  }

 private:
  void begin() {
    begun_ = true;
    while (in_.size() < 2 && bytes_(in_)) continue;
    compressed_ = in_.starts_with("\x1f\x8b");
    constexpr int gzip_window = 15 + 16;  // the largest window, with gzip's header
    if (compressed_ && inflateInit2(&stream_, gzip_window) != Z_OK) throw Error("zlib cannot start");
  }

  // False at the end of the text.
  bool inflate_part(std::string& text) {
    if (at_ == in_.size()) {
      in_.clear(), at_ = 0;
      if (!bytes_(in_)) {
        if (ended_) return false;
        throw UsageError(fmt::format("{}: was cut off: its gzip stream has no end", file_));
      }
    }
    if (std::exchange(ended_, false)) inflateReset(&stream_);  // gzip files may be joined
    const std::size_t had = text.size();
    text.resize(had + part_bytes);
    stream_.next_in = reinterpret_cast<Bytef*>(in_.data() + at_);
    stream_.avail_in = static_cast<uInt>(in_.size() - at_);
    stream_.next_out = reinterpret_cast<Bytef*>(text.data() + had);
    stream_.avail_out = static_cast<uInt>(part_bytes);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    at_ = in_.size() - stream_.avail_in;
    text.resize(text.size() - stream_.avail_out);
    ended_ = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      throw UsageError(fmt::format("{}: its gzip stream is damaged: {}", file_, stream_.msg ? stream_.msg : "unknown"));
    return true;
  }

  Source bytes_;
  std::string file_, in_;
  std::size_t at_ = 0;
  z_stream stream_{};
  bool begun_ = false, compressed_ = false, ended_ = false;
};

}  // namespace

Source inflated(Source bytes, const std::string& file) {
  const auto inflater = std::make_shared<Inflater>(std::move(bytes), file);
  return [inflater](std::string& text) { return inflater->more(text); };
}

void compress(const std::filesystem::path& from, const std::filesystem::path& to) {
  const Source parts = parts_of(from);
  gzFile const out = gzopen(to.c_str(), "wb6");
  if (!out) throw Error(fmt::format("{}: cannot be written", to.string()));
  bool whole = true;
  for (std::string part; whole && parts(part); part.clear())
    whole = gzwrite(out, part.data(), static_cast<unsigned>(part.size())) == static_cast<int>(part.size());
  whole = gzclose(out) == Z_OK && whole;
  if (!whole) throw Error(fmt::format("{}: cannot be written", to.string()));
}

}  // namespace assay::kineto
