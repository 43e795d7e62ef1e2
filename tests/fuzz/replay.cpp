// Feeds inputs to the targets without libFuzzer, so that every build replays the seeds, including every crash ever
// found. usage: fuzz_replay TARGET FILE|FOLDER...
//        fuzz_replay --mutations COUNT SEEDS KEPT
// The second mutates each target's seeds, which are in SEEDS/TARGET, COUNT times; an input that breaks a target is left
// in the file KEPT.
#include "harness/core/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace assay;
namespace fs = std::filesystem;

constexpr unsigned longest_seconds = 60;  // of one input, with sanitizers on a busy machine

const std::map<std::string, fuzz::Target> targets = {
#define ASSAY_FUZZ_ENTRY(name) {#name, fuzz::name},
    ASSAY_FUZZ_TARGETS(ASSAY_FUZZ_ENTRY)
#undef ASSAY_FUZZ_ENTRY
};

std::vector<fs::path> files_of(const fs::path& path) {
  std::vector<fs::path> files;
  if (!fs::is_directory(path)) return {path};
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string content(const fs::path& file) { return read_whole(file, std::uintmax_t{1} << 24); }

int replay(const std::string& name, std::span<char*> places) {
  std::size_t seeds = 0;
  for (const char* place : places)
    for (const fs::path& file : files_of(place)) {
      std::fprintf(stderr, "%s\n", file.c_str());  // after a crash, the last one printed is the culprit
      targets.at(name)(content(file));
      ++seeds;
    }
  fmt::print("{}: {} seeds\n", name, seeds);
  return seeds == 0 ? 1 : 0;
}

int mutate(std::uint64_t count, const fs::path& folder, const fs::path& kept) {
  // Open until the end: a file that is closed after it was cut to nothing goes to the disk each time.
  const Descriptor fd(::open(kept.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  for (const auto& [name, target] : targets) {
    std::vector<std::string> seeds;
    for (const fs::path& file : files_of(folder / name)) seeds.push_back(content(file));
    std::fprintf(stderr, "%s\n", name.c_str());  // after a crash, the last one printed is the culprit
    for (std::uint64_t number = 0; number < count; ++number) {
      const std::string input = fuzz::mutated(seeds, number);
      fuzz::expect(::ftruncate(fd, 0) == 0 && ::lseek(fd, 0, SEEK_SET) == 0, std::strerror(errno));
      write_all(fd, input, kept);
      ::alarm(longest_seconds);
      target(input);
    }
  }
  ::alarm(0);
  fs::remove(kept);
  fmt::print("{} mutated inputs of {} targets\n", count * targets.size(), targets.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--mutations" && argc == 5) {
    const std::string_view number = argv[2];
    std::uint64_t count = 0;
    std::from_chars(number.data(), number.data() + number.size(), count);
    if (count > 0) return mutate(count, argv[3], argv[4]);
  }
  if (targets.contains(word) && argc > 2)
    return replay(word, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
  fmt::print(stderr, "usage: {0} TARGET FILE|FOLDER..., or {0} --mutations COUNT SEEDS KEPT\n", argv[0]);
  return 2;
}
