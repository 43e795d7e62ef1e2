// Reads run directories.
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/plain_text.h"
#include "harness/core/secrets.h"
#include "harness/core/text.h"
#include "harness/json/masked.h"
#include "harness/json/members.h"
#include "harness/record/content_hash.h"
#include "harness/record/run_dir.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <map>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t max_run_bytes = 256u << 20;

}  // namespace

std::vector<const Record*> RunData::last_attempts() const {
  std::vector<const Record*> last;
  std::map<Identity, std::size_t> places;
  for (const Record& record : records) {
    const auto [place, fresh] = places.try_emplace(record.identity(), last.size());
    if (fresh)
      last.push_back(&record);
    else
      last[place->second] = &record;
  }
  return last;
}

std::vector<Record> RunData::final_records() const {
  std::vector<Record> last;
  for (const Record* record : last_attempts()) last.push_back(*record);
  return last;
}

namespace {

// Reports read only clocks, power, energy and what rules of diagnosis judge: the other sensors and the logs are larger
// than all figures.
void drop_unread(Record& record) {
  std::erase_if(record.telemetry, [](const auto& sensor) {
    const auto& [name, series] = sensor;
    return series.unit != "Hz" && series.unit != "W" && series.unit != "J" && name != "cpu_wait" &&
           name != "dram_active";
  });
  record.log = std::string();
}

// Keeps what reports need of a plan's cases; a whole plan may be larger than the records.
void keep_identities(Json& run) {
  if (!run.contains("plan") || !run["plan"].is_object() || !run["plan"].contains("cases")) return;
  Json& cases = run["plan"]["cases"];
  if (!cases.is_array()) return;
  for (Json& one : cases) {
    if (!one.is_object()) continue;
    Json kept = Json::object();
    for (const char* name : {"key", "ranks", "seed"})
      if (const auto found = one.find(name); found != one.end()) kept[name] = std::move(*found);
    one = std::move(kept);
  }
}

// Gives the next line and whether it ended with a newline; false after the last.
using NextLine = std::function<bool(std::string& line, bool& ended)>;

RunData read_run(const fs::path& dir, const std::string& run_text, const NextLine& next, JsonPool& pool, bool whole) {
  RunData data;
  data.dir = dir;
  std::uint64_t lines_hash = 0;
  const std::uint64_t content = hash64(run_text);
  try {
    data.run = masked(parse_untrusted(run_text));  // older builds did not mask what they wrote
    if (!data.run.is_object()) throw Error("not an object");
    const Json schema = data.run.value("schema", Json());
    if (schema.is_null()) throw Error("no schema");
    if (!schema.is_number_integer()) throw Error("schema: not an integer");
    check_schema(schema.get<std::int64_t>());
    if (const auto ended = data.run.find("ended"); ended != data.run.end() && ended->is_object())
      data.ended = read_value<Ended>(*ended);
  } catch (const Error& caught) {
    throw UsageError(fmt::format("{}: {}", (dir / "run.json").string(), caught.what()));
  }
  std::string line;
  bool ended = true;
  for (int number = 1; next(line, ended); ++number) {
    if (line.empty()) continue;
    if (line.size() > max_line_bytes) throw Error(fmt::format("{}: line {} is too long", dir.string(), number));
    lines_hash += hash64(line);
    try {
      data.records.push_back(Record::from_text(holds_secret(line) ? masked_line(line) : line, pool));
      if (!whole) drop_unread(data.records.back());
      data.lines.push_back(number);
    } catch (const std::exception& caught) {
      data.problems.push_back(fmt::format("records.jsonl line {}: {}{}", number, reason_of(caught),
                                          ended ? "" : " (the last line, cut short by a kill)"));
    }
  }
  // A sum, so that the order of lines does not matter.
  data.content = content + lines_hash;
  data.records.shrink_to_fit();
  if (!whole) keep_identities(data.run);
  return data;
}

bool is_absent(const fs::path& path) {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::not_found;
}

RunData read_run(const fs::path& dir, JsonPool& pool, bool whole) {
  const std::string run = read_run_json(dir);
  const fs::path file = dir / "records.jsonl";
  std::optional<LineReader> lines;
  const NextLine next = [&](std::string& line, bool& ended) {
    if (!lines && is_absent(file)) throw UsageError(fmt::format("{} holds no run (no records.jsonl)", dir.string()));
    if (!lines) lines.emplace(file, max_line_bytes);
    const bool more = lines->next(line);
    ended = lines->ended();
    return more;
  };
  return read_run(dir, run, next, pool, whole);
}

std::string series_name(const fs::path& dir, const Record& record) {
  const fs::path name(record.samples.series.value());
  // A record is untrusted; its series must be inside its run directory.
  if (name.is_absolute() || name.lexically_normal().string().starts_with(".."))
    throw UsageError(fmt::format("{}: series {} of {} lies outside the run", one_line(dir.string(), PATH_MAX),
                                 in_quotes(name.string()), in_quotes(record.key)));
  return name.string();
}

SeriesFile parse_series(const std::string& text, const fs::path& path) {
  try {
    return read_text<SeriesFile>(text);
  } catch (const Error& caught) {
    throw UsageError(fmt::format("{}: {}", one_line(path.string(), PATH_MAX), caught.what()));
  }
}

}  // namespace

std::string read_run_json(const fs::path& dir) {
  if (is_absent(dir)) throw UsageError(fmt::format("{}: no such directory", dir.string()));
  if (is_absent(dir / "run.json")) throw UsageError(fmt::format("{} holds no run (no run.json)", dir.string()));
  return read_whole(dir / "run.json", max_run_bytes);
}

RunData run_of_files(const fs::path& dir, const std::function<const std::string&(const std::string& name)>& file) {
  JsonPool pool;
  const std::string& run_text = file("run.json");
  const NextLine next = [rest = std::string_view(file("records.jsonl"))](std::string& line, bool& ended) mutable {
    if (rest.empty()) return false;
    const std::size_t end = rest.find('\n');
    line = rest.substr(0, end);
    ended = end != rest.npos;
    rest.remove_prefix(ended ? end + 1 : rest.size());
    return true;
  };
  RunData run = read_run(dir, run_text, next, pool, false);
  for (Record& record : run.records) {
    if (!record.samples.series) continue;
    const std::string name = series_name(dir, record);
    SeriesFile series = parse_series(file(name), dir / name);
    record.samples.values = std::move(series.values);
    record.samples.at = std::move(series.at);
    record.samples.series.reset();
  }
  return run;
}

RunData read_run(const fs::path& dir) {
  JsonPool pool;
  return read_run(dir, pool, true);
}

std::vector<RunData> read_runs(const std::vector<fs::path>& dirs) {
  std::vector<RunData> runs(dirs.size());
  std::vector<std::exception_ptr> errors(dirs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    JsonPool pool;
    for (std::size_t i; (i = next++) < dirs.size();) {
      try {
        runs[i] = read_run(dirs[i], pool, false);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(cores, dirs.size()); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return runs;
}

std::pair<std::vector<double>, std::vector<double>> timed_samples(const RunData& run, const Record& record) {
  if (!record.samples.series) return {record.samples.values, record.samples.at};
  const fs::path path = run.dir / series_name(run.dir, record);
  if (is_absent(path)) throw MissingSeries(one_line(path.string(), PATH_MAX) + ": no such file");
  SeriesFile file = parse_series(read_whole(path, max_run_bytes), path);
  return {std::move(file.values), std::move(file.at)};
}

std::vector<double> all_samples(const RunData& run, const Record& record) { return timed_samples(run, record).first; }

}  // namespace assay
