#include "harness/fitness/accept/suspicions.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/utc.h"
#include "harness/json/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t max_bytes = std::uintmax_t{16} << 20;

struct Suspicion {
  std::string acceptance, host, part;  // when the acceptance began; the part as it is told

  static void members(auto& self, auto& io) {
    io.required("acceptance", self.acceptance), io.required("host", self.host), io.required("part", self.part);
  }
};

std::vector<Suspicion> read_past(const fs::path& file, const State& state) {
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  auto past = read_value<std::vector<Suspicion>>(parse_untrusted(read_whole(file, max_bytes)));
  const auto now = parse_utc(state.started);
  std::erase_if(past, [&](const Suspicion& one) {
    const auto then = parse_utc(one.acceptance);
    return !then || !now || *now - *then > std::time_t{suspicious_days} * 86400 || one.acceptance == state.started;
  });
  return past;
}

}  // namespace

void escalate_over_time(std::vector<fitness::AcceptedHost>& hosts, const State& state, const fs::path& file,
                        std::vector<std::string>& notes) {
  try {
    std::vector<Suspicion> past = read_past(file, state);
    const std::size_t known = past.size();
    for (fitness::AcceptedHost& host : hosts)
      for (const auto& [part, checks] : fitness::suspicions_of(host)) {
        std::set<std::string> acceptances = {state.started};
        for (std::size_t i = 0; i < known; ++i)
          if (past[i].host == host.host && past[i].part == part) acceptances.insert(past[i].acceptance);
        past.push_back({state.started, host.host, part});
        if (acceptances.size() >= suspicious_times)
          host.checks[checks.back()].note(Fitness::fail, fmt::format("{} is suspected in {} acceptances since {}", part,
                                                                     acceptances.size(), *acceptances.begin()));
      }
    if (past.empty()) return;
    fs::create_directories(file.parent_path());
    replace_file(file, dump_document(json_of(past)));
  } catch (const std::exception& error) {
    notes.push_back(fmt::format("what earlier acceptances suspected is not known: {}", error.what()));
  }
}

}  // namespace assay::accept
