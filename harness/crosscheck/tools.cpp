#include "harness/crosscheck/tools.h"

#include "harness/crosscheck/peer_tools.h"
#include "harness/runs/figures.h"

#include <algorithm>
#include <array>

namespace assay::crosscheck {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

std::vector<std::int64_t> whole_mebibytes(const Sizes& sizes) {
  std::vector<std::int64_t> whole;
  for (const std::int64_t bytes : sizes.all)
    if (bytes % mebibyte == 0) whole.push_back(bytes);
  return whole;
}

// nvbandwidth's name of our direction.
constexpr std::array<std::pair<const char*, const char*>, 3> copies{{{"h2d", "host_to_device_memcpy_ce"},
                                                                     {"d2h", "device_to_host_memcpy_ce"},
                                                                     {"p2p", "device_to_device_memcpy_read_ce"}}};

// As many of `copies` as these GPUs allow.
std::size_t copies_on(int gpus) { return gpus > 1 ? copies.size() : copies.size() - 1; }

const Tool tools[] = {
    {"all_reduce_perf", "nccl-tests: https://github.com/NVIDIA/nccl-tests",
     [](const Sizes&, int gpus) {
       return gpus > 1 ? std::string() : "an all-reduce takes two GPUs, and one is visible";
     },
     [](const Sizes& sizes, int gpus) {
       return Json::array({{{"family", "collective"}, {"op", "all_reduce"}, {"bytes", sizes.all}, {"ranks", {gpus}}}});
     },
     [](const Record&) { return std::pair<std::string, const char*>("all_reduce", "algbw"); },
     [](const std::string& path, const Sizes& sizes, int gpus, const Printed& printed) {
       const std::string text = printed({path, "-b", std::to_string(sizes.from), "-e", std::to_string(sizes.to), "-f",
                                         std::to_string(size_factor), "-t", std::to_string(gpus), "-g", "1"});
       Figures figures;
       for (const auto& [bytes, bandwidth] : read_all_reduce_perf(text)) figures[{"all_reduce", bytes}] = bandwidth;
       return figures;
     }},
    {"nvbandwidth", "https://github.com/NVIDIA/nvbandwidth",
     [](const Sizes& sizes, int) { return whole_mebibytes(sizes).empty() ? "its sizes are whole MiB" : std::string(); },
     [](const Sizes& sizes, int gpus) {
       Json directions = Json::array();
       for (std::size_t i = 0; i < copies_on(gpus); ++i) directions.push_back(copies[i].first);
       return Json::array({{{"family", "transfer"},
                            {"direction", directions},
                            {"memory", "pinned"},
                            {"by", "engine"},
                            {"bytes", whole_mebibytes(sizes)}}});
     },
     [](const Record& record) {
       const std::string direction = param_text(record, "direction");
       const auto* const copy = std::ranges::find_if(copies, [&](const auto& one) { return direction == one.first; });
       return std::pair<std::string, const char*>(copy == copies.end() ? direction : copy->second, "bandwidth");
     },
     [](const std::string& path, const Sizes& sizes, int gpus, const Printed& printed) {
       Figures figures;
       for (const std::int64_t bytes : whole_mebibytes(sizes)) {
         std::vector<std::string> command{path, "-j", "-b", std::to_string(bytes / mebibyte), "-t"};
         for (std::size_t i = 0; i < copies_on(gpus); ++i) command.emplace_back(copies[i].second);
         for (const auto& [test, matrix] : read_nvbandwidth(printed(command))) {
           // Ours are those of GPU 0, or of the slowest pair.
           const bool pairs = test == copies.back().second;
           for (const auto& row : matrix)
             for (std::size_t column = 0; column < (pairs ? row.size() : std::min<std::size_t>(row.size(), 1));
                  ++column)
               if (row[column]) {
                 const auto [place, fresh] = figures.try_emplace({test, bytes}, *row[column]);
                 if (!fresh) place->second = std::min(place->second, *row[column]);
               }
         }
       }
       return figures;
     }},
};

}  // namespace

std::span<const Tool> all_tools() { return tools; }

}  // namespace assay::crosscheck
