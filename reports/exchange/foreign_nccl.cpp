// What nccl-tests and rccl-tests write: their JSON (-J), and what they print.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/statistics/statistics.h"
#include "reports/exchange/foreign.h"
#include "reports/exchange/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

namespace assay::report {

namespace {

constexpr double giga = 1e9, micro = 1e-6;
constexpr std::array<std::string_view, 2> nccl_places = {"out_of_place", "in_place"};

class NcclReader {
 public:
  NcclReader(const ForeignInput& input, std::string_view device) : file_(input.file), device_(device) {}

  FigureCollector& figures() { return figures_; }

  void set_world(ForeignWorld world) {
    std::set<std::string> hosts;
    std::string key = std::to_string(world.ranks);
    for (const RankResult& rank : world.known) {
      world.ranks = std::max(world.ranks, rank.rank + 1);
      hosts.insert(rank.host);
      key += fmt::format("\n{} {} {}", rank.rank, rank.host, rank.device);
      auto& devices = devices_[rank.host];
      devices.insert({rank.pci.empty() ? std::to_string(rank.rank) : rank.pci, rank});
    }
    world.nodes = std::max(1, static_cast<int>(hosts.size()));
    gpus_per_host_ = std::max<std::size_t>(gpus_per_host_, world.ranks / world.nodes);
    world.device = device_;
    std::shared_ptr<const ForeignWorld>& known = worlds_[key];
    if (!known) known = std::make_shared<const ForeignWorld>(std::move(world));
    world_ = known;
  }

  std::string test_name(const std::string& collective, int table = 1) const {
    if (!collective.empty()) return collective;
    const std::string stem = std::filesystem::path(file_).stem().string();
    return table > 1 ? fmt::format("{}/table={}", stem, table) : stem;
  }

  // `times` are of single calls, in seconds: the bandwidth's interval follows from them.
  void add(const std::string& test, const NcclRow& row, const NcclHalf& half, const Attributes& conditions,
           const std::vector<double>& times = {}) {
    ForeignFigure figure;
    figure.name = fmt::format("{}/{}/{}", test, row.type, row.redop.empty() ? "none" : row.redop);
    if (!row.root.empty() && row.root != "-1") figure.name += "/root=" + row.root;
    figure.name += fmt::format("/bytes={:.0f}/{}", row.bytes, half.place);
    figure.world = world_;
    figure.conditions = conditions;
    figure.unit = "B/s";
    for (const auto& [name, text] : half.columns) figure.labels[name] = text;
    if (half.wrong) {
      figure.check = Check{"wrong_elements", *half.wrong == 0, half.wrong, 0, {}};
      if (*half.wrong != 0)
        figure.status = Status::failed, figure.reason = fmt::format("{:.0f} wrong elements", *half.wrong);
      wrong_ += *half.wrong != 0;
    }
    if (!half.algbw || !half.busbw) return keep_without(figure, "it has no bandwidth");
    const auto interval = median_interval(times);
    const double middle = times.empty() ? 0 : median(times);
    const auto bandwidth = [&](const char* name, double value) {
      figure.metric = name;
      figure.ci95.reset();
      if (interval && interval->low > 0 && value > 0)
        figure.ci95 = Interval{value * middle / interval->high, value * middle / interval->low};
      keep(figure, value);
      figure.check.reset();
    };
    bandwidth("busbw", *half.busbw);
    bandwidth("algbw", *half.algbw);
    if (times.empty()) return;
    figure.metric = "time", figure.unit = "s", figure.better = Better::lower;
    figure.ci95.reset(), figure.values = times;
    kept_.push_back(std::move(figure));
  }

  // A failure that no row shows is that of every row of the test, as none of them can be trusted; without rows it is
  // the test's.
  void end_test(const std::string& test, std::optional<std::pair<Status, std::string>> failure,
                const std::string& out_of_bounds) {
    if (!out_of_bounds.empty() && wrong_ == 0 && !failure) failure.emplace(Status::failed, out_of_bounds);
    if (failure && kept_.empty()) {
      ForeignFigure whole;
      whole.name = test, whole.world = world_;
      kept_.push_back(std::move(whole));
    }
    for (ForeignFigure& figure : kept_) {
      if (failure && figure.status < failure->first) figure.status = failure->first, figure.reason = failure->second;
      figures_.add(std::move(figure));
    }
    kept_.clear();
    wrong_ = 0;
  }

  // What the file says of hosts and GPUs; a host has those of the fullest. A log may leave out ranks: what is equal for
  // all that it names is taken for theirs.
  ForeignContext context(const std::string& version) {
    constexpr std::size_t max_gpus = 64;
    ForeignContext about;
    Json environment = Json::object();
    const std::map<std::string, RankResult>* fullest = nullptr;
    for (const auto& [host, devices] : devices_) {
      environment["hostnames"].push_back(host);
      if (!fullest || devices.size() > fullest->size()) fullest = &devices;
    }
    if (devices_.size() == 1) about.machine = devices_.begin()->first;
    if (fullest)
      for (const auto& [place, rank] : *fullest) {
        Json gpu = {{"name", rank.device}};
        if (!rank.pci.empty()) gpu["pci"] = rank.pci;
        if (!rank.device.empty()) environment["gpus"].push_back(std::move(gpu));
      }
    Json& gpus = environment["gpus"];
    const auto same = [&](const Json& gpu) { return gpu["name"] == gpus.front()["name"]; };
    if (gpus.is_null())
      environment.erase("gpus");
    else if (gpus_per_host_ > max_gpus)
      figures_.remark(fmt::format("{} ranks a host are more than {} GPUs: only those that are named are described",
                                  gpus_per_host_, max_gpus));
    else if (std::all_of(gpus.begin(), gpus.end(), same))
      while (gpus.size() < gpus_per_host_) gpus.push_back({{"name", gpus.front()["name"]}});
    if (!version.empty()) environment["libraries"][device_ == "cuda" ? "nccl" : "rccl"] = version;
    if (!environment.empty()) about.environment = std::move(environment);
    return about;
  }

 private:
  void keep(ForeignFigure figure, double value) {
    if (!std::isfinite(value)) return keep_without(std::move(figure), figure.metric + " is not finite");
    figure.values = {value};
    kept_.push_back(std::move(figure));
  }
  void keep_without(ForeignFigure figure, const std::string& reason) {
    figure.metric.clear(), figure.unit.clear();
    if (figure.status < Status::error) figure.status = Status::error, figure.reason = reason;
    kept_.push_back(std::move(figure));
  }

  std::string file_, device_;
  FigureCollector figures_;
  std::vector<ForeignFigure> kept_;  // of the test at hand
  std::size_t wrong_ = 0;            // rows
  std::shared_ptr<const ForeignWorld> world_;
  std::map<std::string, std::shared_ptr<const ForeignWorld>> worlds_;
  std::map<std::string, std::map<std::string, RankResult>> devices_;  // by host and place
  std::size_t gpus_per_host_ = 0;
};

bool is_false(const Json& value) { return value == Json(false) || value == Json("false"); }

// "all_reduce" of "/opt/build/all_reduce_perf".
std::string program_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (name.ends_with("_perf")) name.resize(name.size() - 5);
  return name;
}

ForeignWorld json_world(const Json& config, const std::string& file, FigureCollector& figures) {
  ForeignWorld world;
  const double per_process =
      number_member(config, "/nthreads").value_or(1) * number_member(config, "/ngpus").value_or(1);
  world.ranks = ranks_of_process(per_process, file + ": /config: nthreads x ngpus");
  if (const Json& devices = member(config, "/devices"); devices.is_array())
    for (const Json& one : devices) {
      RankResult rank;
      const double number = number_member(one, "/rank").value_or(-1);
      if (!(number >= 0 && number < max_ranks)) {
        figures.not_read("config/devices", fmt::format("has no rank from 0 to {}", max_ranks - 1));
        continue;
      }
      rank.rank = static_cast<int>(number);
      rank.host = text_member(one, "/hostname"), rank.device = text_member(one, "/device_info");
      if (const std::string place = text_member(one, "/device_hex"); place.find(':') != place.npos) rank.pci = place;
      world.known.push_back(std::move(rank));
    }
  return world;
}

std::vector<double> call_times(const Json& result, std::string_view place) {
  std::vector<double> times;
  const Json& list = member(result, fmt::format("/{}_per_iter/times_us", place));
  if (list.is_array())
    for (const Json& one : list)
      if (one.is_number() && one.get<double>() > 0) times.push_back(micro * one.get<double>());
  return times;
}

ForeignFile read_nccl_json(const ForeignInput& input, const std::string& text, std::string_view device) {
  const Json json = parse_foreign_json(text, input.file);
  const Json& results = need_list(json, "/results", input.file, "nccl-tests");
  NcclReader reader(input, device);
  const Json& config = member(json, "/config");
  reader.set_world(json_world(config, input.file, reader.figures()));
  const auto code = number_member(json, "/nccl_version");
  ForeignContext about = reader.context(code ? nccl_version_text(*code) : "");
  about.time = reader.figures().time(text_member(json, "/start_time"), text, input.file);
  // Keeps only those variables that NCCL reads: the rest may hold secrets.
  if (const Json& variables = member(json, "/env"); variables.is_array())
    for (const Json& one : variables)
      if (const std::string line = one.is_string() ? one.get<std::string>() : ""; line.starts_with("NCCL_"))
        if (const std::size_t equals = line.find('='); equals != line.npos)
          about.facts[line.substr(0, equals)] = line.substr(equals + 1);
  reader.figures().measured(about);
  Attributes conditions;
  if (const auto graph = number_member(config, "/graph"); graph.value_or(0) != 0)
    conditions["graph"] = fmt::format("{:.0f}", *graph);
  if (const auto many = number_member(config, "/aggregated_iterations"); many.value_or(1) != 1)
    conditions["aggregated_iterations"] = fmt::format("{:.0f}", *many);
  if (member(config, "/blocking_collectives") == Json("true")) conditions["blocking"] = "1";
  const Json& args = member(json, "/args");
  const std::string program = args.is_array() && !args.empty() && args[0].is_string() ? program_name(args[0]) : "";
  std::size_t number = 0;
  for (const Json& one : results) {
    const std::string at = fmt::format("results/{}", number++);
    const auto size = number_member(one, "/size");
    if (!size) {
      reader.figures().not_read(at, "has no size");
      continue;
    }
    NcclRow row{*size, text_member(one, "/type"), text_member(one, "/redop"), {}, {}};
    if (const Json& root = member(one, "/root"); !root.is_null()) row.root = scalar_text(root);
    row.root.erase(0, row.root.find_first_not_of(' '));
    const std::string experiment = program_name(text_member(one, "/experiment_name"));
    bool any = false;
    for (const std::string_view place : nccl_places) {
      const Json& half = member(one, fmt::format("/{}", place));
      if (!half.is_object()) continue;
      any = true;
      const auto rate = [&](const char* name) {
        const auto value = number_member(half, name);
        return value ? std::optional(giga * *value) : std::nullopt;
      };
      const NcclHalf read{std::string(place), rate("/alg_bw"), rate("/bus_bw"), number_member(half, "/nwrong")};
      reader.add(reader.test_name(experiment.empty() ? program : experiment), row, read, conditions,
                 call_times(one, place));
    }
    if (!any) reader.figures().not_read(at, "is neither out of place nor in place");
  }
  const auto count = number_member(json, "/out_of_bounds/count");
  std::string wrong;
  if (count.value_or(0) > 0 || is_false(member(json, "/out_of_bounds/okay")))
    wrong = count ? fmt::format("{:.0f} values out of bounds", *count) : "values out of bounds";
  std::optional<std::pair<Status, std::string>> failure;
  if (is_false(member(json, "/average_bus_bandwidth/okay")))
    failure.emplace(Status::failed, "its average bus bandwidth is below what was asked");
  reader.end_test(reader.test_name(program), failure, wrong);
  return reader.figures().take();
}

ForeignFile read_nccl(const ForeignInput& input, std::string_view device) {
  const std::string text = input.text();
  if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{')
    return read_nccl_json(input, text, device);
  const NcclLog log = read_nccl_log(text, input.file);
  if (log.tests.empty())
    throw UsageError(fmt::format("{}: no table and no JSON of nccl-tests{}", input.file,
                                 log.not_read > 0 ? "; the first line that is none: " + log.first_not_read : ""));
  NcclReader reader(input, device);
  for (const NcclTest& test : log.tests) reader.set_world(test.world);
  ForeignContext about = reader.context(log.version);
  about.time = reader.figures().time(log.time, input.file);
  reader.figures().measured(about);
  for (const NcclTest& test : log.tests) {
    reader.set_world(test.world);
    const std::string name = reader.test_name(test.collective, test.table);
    for (const NcclRow& row : test.rows)
      for (const NcclHalf& half : row.halves) reader.add(name, row, half, test.conditions);
    reader.end_test(name, test.failure, test.out_of_bounds);
  }
  for (const std::string& remark : log.remarks) reader.figures().remark(remark);
  ForeignFile file = reader.figures().take();
  file.not_read = log.not_read, file.first_not_read = log.first_not_read;
  return file;
}

}  // namespace

ForeignFile read_nccl_tests(const ForeignInput& input) { return read_nccl(input, "cuda"); }
ForeignFile read_rccl_tests(const ForeignInput& input) { return read_nccl(input, "hip"); }

}  // namespace assay::report
