// A bare TurboJPEG loop on one thread: decodes all images of a folder completely, from memory to RGB, repeatedly.
//   decode FOLDER rate   images per second of wall time
//   decode FOLDER cost   CPU time of the thread per compressed byte
// Prints one JSON line: the median over rounds through the folder, at least 5 rounds and 2 s.
#include <turbojpeg.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Image = std::vector<unsigned char>;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<Image> load(const std::string& folder) {
  std::vector<Image> images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".jpg") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    images.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return images;
}

bool decode(tjhandle handle, const Image& image, std::vector<unsigned char>& pixels) {
  int width = 0, height = 0, subsampling = 0, colorspace = 0;
  const auto bytes = static_cast<unsigned long>(image.size());
  if (tjDecompressHeader3(handle, image.data(), bytes, &width, &height, &subsampling, &colorspace) != 0) return false;
  pixels.resize(std::max(pixels.size(), static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3));
  return tjDecompress2(handle, image.data(), bytes, pixels.data(), width, 0, height, TJPF_RGB, 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[2] : "";
  if (what != "rate" && what != "cost") return std::fputs("usage: decode FOLDER rate|cost\n", stderr), 2;
  const std::vector<Image> images = load(argv[1]);
  double bytes = 0;
  for (const Image& image : images) bytes += static_cast<double>(image.size());
  if (images.empty()) return std::fprintf(stderr, "decode: no .jpg below %s\n", argv[1]), 1;
  const tjhandle handle = tjInitDecompress();
  std::vector<unsigned char> pixels;
  std::vector<double> rounds;
  const clockid_t clock = what == "rate" ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  const double begin = seconds(CLOCK_MONOTONIC);
  for (bool warm = false; rounds.size() < 5 || seconds(CLOCK_MONOTONIC) - begin < 2; warm = true) {
    const double start = seconds(clock);
    for (const Image& image : images)
      if (!decode(handle, image, pixels)) return std::fprintf(stderr, "decode: %s\n", tjGetErrorStr2(handle)), 1;
    if (warm) rounds.push_back(seconds(clock) - start);
  }
  std::nth_element(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2), rounds.end());
  const double median = rounds[rounds.size() / 2];
  if (what == "rate")
    std::printf("{\"value\": %.6e, \"unit\": \"img/s\", \"better\": \"higher\"}\n",
                static_cast<double>(images.size()) / median);
  else
    std::printf("{\"value\": %.6e, \"unit\": \"s/B\", \"better\": \"lower\"}\n", median / bytes);
  tjDestroy(handle);
}
