// Feeds seeds to a target without libFuzzer, so that every build replays them, including every crash ever found.
// usage: fuzz_replay TARGET FILE|FOLDER...
#include "harness/core/files.h"
#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace assay;
  namespace fs = std::filesystem;
  const std::map<std::string, fuzz::Target> targets = {
      {"analysis", fuzz::analysis},     {"audits", fuzz::audits}, {"channel", fuzz::channel},
      {"checkpoint", fuzz::checkpoint}, {"expectation", fuzz::expectation},
 {"floors", fuzz::floors}, {"foreign", fuzz::foreign},
      {"history", fuzz::history},       {"hosts", fuzz::hosts},   {"jpeg", fuzz::jpeg},
      {"kernel_log", fuzz::kernel_log},
      {"message", fuzz::message},       {"model", fuzz::model},   {"pack", fuzz::pack},
      {"peer_tools", fuzz::peer_tools}, {"plan", fuzz::plan},     {"prices", fuzz::prices},
      {"record", fuzz::record},         {"run", fuzz::run},       {"tar", fuzz::tar},
      {"tokens", fuzz::tokens},
  };
  const auto target = targets.find(argc > 1 ? argv[1] : "");
  if (target == targets.end() || argc < 3) {
    fmt::print(stderr, "usage: {} TARGET FILE|FOLDER...\n", argv[0]);
    return 2;
  }
  std::vector<fs::path> files;
  for (int i = 2; i < argc; ++i) {
    if (fs::is_directory(argv[i]))
      for (const fs::directory_entry& entry : fs::directory_iterator(argv[i])) files.push_back(entry.path());
    else
      files.emplace_back(argv[i]);
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::fprintf(stderr, "%s\n", file.c_str());  // after a crash, the last one printed is the culprit
    target->second(read_whole(file, std::uintmax_t{1} << 24));
  }
  fmt::print("{}: {} seeds\n", target->first, files.size());
  return files.empty() ? 1 : 0;
}
