// nvbandwidth's results: its JSON (-j), and the text that it prints without.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/mentions.h"
#include "harness/figures/quantity.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"
#include "reports/exchange/nccl_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace assay::report {

namespace {

// A test has a matrix of devices; "N/A" is no pair. A test that did not run says why in its status.
struct BandwidthTest {
  std::string name;
  std::string status;  // "Passed", "Waived", "Not Found", "Error"; empty: as "Passed"
  std::string error = {};
  std::string description = {};  // "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
  std::string sum = {};
  std::vector<std::vector<std::string>> matrix = {};
};

struct BandwidthResults {
  std::string version, cuda, driver;
  std::vector<std::string> devices;
  std::string error;  // of the whole program
  std::vector<BandwidthTest> tests;
};

// "13.2" of "13020" and of "13.2 (13020)".
std::string cuda_version(const std::string& text) {
  const std::string word = text.substr(0, text.find(' '));
  const auto code = number_from(word);
  if (!code || word.find('.') != word.npos) return word;
  return fmt::format("{:.0f}.{:.0f}", std::floor(*code / 1000), std::fmod(*code, 1000) / 10);
}

// "NVIDIA H100 80GB HBM3" of "0: NVIDIA H100 80GB HBM3 (00000008:01:00)".
std::string device_name(const std::string& text) {
  std::string name = text.substr(std::min(text.find(": ") + 2, text.size()));
  name = name.substr(0, name.find_first_of("(:"));
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

BandwidthResults results_of_json(const std::string& text, const std::string& file, FigureCollector& figures) {
  const Json json = parse_foreign_json(text, file);
  const Json& root = member(json, "/nvbandwidth");
  const auto scalar = [](const Json& parent, const char* pointer) {
    const Json& value = member(parent, pointer);
    return value.is_null() ? std::string() : scalar_text(value);
  };
  BandwidthResults results;
  for (const char* version : {"/version", "/git_version"})
    if (const std::string value = text_member(root, version); !value.empty()) results.version = value;
  results.driver = scalar(root, "/Driver Version");
  results.cuda = cuda_version(scalar(root, "/CUDA Runtime Version"));
  if (const Json& devices = member(root, "/GPU Device list"); devices.is_array())
    for (const Json& device : devices) results.devices.push_back(device_name(scalar_text(device)));
  results.error = text_member(root, "/error");
  for (const Json& one : need_list(json, "/nvbandwidth/testcases", file, "nvbandwidth")) {
    BandwidthTest test{.name = text_member(one, "/name"), .status = text_member(one, "/status")};
    if (test.name.empty()) {
      figures.not_read("testcases", "a test has no name");
      continue;
    }
    test.error = text_member(one, "/error");
    test.description = text_member(one, "/bandwidth_description");
    test.sum = scalar(one, "/sum");
    if (const Json& matrix = member(one, "/bandwidth_matrix"); matrix.is_array())
      for (const Json& row : matrix) {
        test.matrix.emplace_back();
        if (!row.is_array()) continue;
        for (const Json& cell : row) test.matrix.back().push_back(cell.is_null() ? "N/A" : scalar_text(cell));
      }
    results.tests.push_back(std::move(test));
  }
  return results;
}

class TextReader {
 public:
  TextReader(const std::string& file, FigureCollector& figures) : file_(file), figures_(figures) {}

  BandwidthResults read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      line = visible_text(line);
      std::string time;
      while (!read_line(line) && strip_prefix(line, time)) continue;
    }
    end_test();
    if (results_.tests.empty() && unnamed_ == 0)
      throw UsageError(
          fmt::format("{}: neither nvbandwidth's JSON (-j) nor the text that it prints: no line is "
                      "\"Running TEST.\"",
                      file_));
    if (unnamed_ > 0)
      figures_.remark(fmt::format("{} waived, which nvbandwidth does not name", plural(unnamed_, "test")));
    return std::move(results_);
  }

 private:
  // Returns false for a line that is not nvbandwidth's.
  bool read_line(const std::string& line) {
    const NcclWords words = words_in(line);
    if (words.empty()) return true;
    const auto after = [&](std::string_view key) -> std::optional<std::string> {
      const std::size_t first = line.find_first_not_of(" \t");
      if (line.compare(first, key.size(), key) != 0) return std::nullopt;
      const std::size_t begin = std::min(line.find_first_not_of(" \t", first + key.size()), line.size());
      return line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
    };
    if (const auto name = after("Running "); name && name->ends_with('.') && words.size() == 2) {
      end_test();
      test_.emplace(BandwidthTest{.name = name->substr(0, name->size() - 1), .status = "Passed"});
      columns_ = 0;
      return true;
    }
    if (auto value = after("nvbandwidth Version:")) return results_.version = *value, true;
    if (auto value = after("CUDA Runtime Version:")) return results_.cuda = cuda_version(*value), true;
    if (auto value = after("Driver Version:")) return results_.driver = *value, true;
    if (auto value = after("Device "); value && value->find(": ") != value->npos)
      return results_.devices.push_back(device_name(*value)), true;
    if (auto value = after("Process "); value && value->find("): device ") != value->npos)
      return results_.devices.push_back(device_name(value->substr(value->find("device ")))), true;
    for (const char* status : {"Waived", "Not Found", "Error", "ERROR"})
      if (auto why = after(fmt::format("{}:", status))) return did_not_run(status, *why), true;
    if (line.find("[CUDA_ERROR") != line.npos || line.find("[NVML_ERROR") != line.npos)
      return did_not_run("Error", line.substr(line.find('['))), true;
    return test_ && read_figures(line, words);
  }

  bool read_figures(const std::string& line, const NcclWords& words) {
    if (words.front() == "SUM" && words.size() == 3 && words[1] == test_->name) return test_->sum = words[2], true;
    if (test_->description.empty()) {
      if (line.find('(') == line.npos || !line.ends_with(')')) return false;
      test_->description = line.substr(line.find_first_not_of(" \t"));
      return true;
    }
    if (!number_from(words.front())) return false;
    // "0  1  2" above the rows, then "0  N/A  393.2  391.5".
    if (columns_ == 0) {
      columns_ = words.size();
      return true;
    }
    if (words.size() == columns_ + 1)
      test_->matrix.emplace_back(words.begin() + 1, words.end());
    else
      figures_.not_read(fmt::format("line {}", number_), one_line(line));
    return true;
  }

  void did_not_run(const std::string& status, const std::string& why) {
    if (status == "Waived" && (!test_ || !test_->description.empty())) {
      ++unnamed_;
      return;
    }
    if (!test_) {
      if (results_.error.empty()) results_.error = why.empty() ? status : why;
      return;
    }
    test_->status = status == "ERROR" ? "Error" : status;
    if (test_->error.empty()) test_->error = why;
  }

  void end_test() {
    if (!test_) return;
    if (test_->status == "Passed" && test_->matrix.empty() && test_->sum.empty())
      test_->status = "Error", test_->error = "it printed no figure";
    results_.tests.push_back(*std::exchange(test_, std::nullopt));
  }

  const std::string& file_;
  FigureCollector& figures_;
  BandwidthResults results_;
  std::optional<BandwidthTest> test_;  // whose lines follow
  std::size_t columns_ = 0;            // of its matrix; 0: not known yet
  std::int64_t unnamed_ = 0;           // waived tests
  int number_ = 0;
};

ForeignContext context_of(const BandwidthResults& results) {
  ForeignContext about;
  Json environment = Json::object();
  if (!results.driver.empty()) environment["drivers"]["nvidia"] = results.driver;
  if (!results.cuda.empty()) environment["libraries"]["cuda"] = results.cuda;
  if (!results.version.empty()) environment["libraries"]["nvbandwidth"] = results.version;
  for (const std::string& name : results.devices) environment["gpus"].push_back({{"name", name}});
  if (!environment.empty()) about.environment = std::move(environment);
  return about;
}

void add_test(FigureCollector& figures, const BandwidthTest& test, const std::string& error, ForeignFigure like) {
  like.name = test.name;
  if (test.status != "Passed" && !test.status.empty()) {
    const bool skipped = test.status == "Waived" || test.status == "Not Found";
    const std::string& reason = test.error.empty() && !skipped ? error : test.error;
    figures.add_without(like, skipped ? Status::skipped : Status::error,
                        reason.empty() ? fmt::format("its status is {}", test.status) : reason);
    return;
  }
  const std::string& what = test.description;
  const std::size_t open = what.rfind('('), close = what.rfind(')');
  const auto unit =
      open < close && close != what.npos ? base_unit(what.substr(open + 1, close - open - 1)) : std::nullopt;
  const bool latency = unit ? unit->name == "s" : what.find("latency") != what.npos;
  like.metric = latency ? "latency" : "bandwidth";
  like.unit = unit ? unit->name : "1", like.better = latency ? Better::lower : Better::higher;
  if (!what.empty()) like.labels["description"] = what.substr(0, open);
  const auto add = [&](const std::string& place, const std::string& value) {
    if (value == "N/A" || value.empty()) return;
    ForeignFigure figure = like;
    figure.name += place;
    if (const auto number = number_from(value))
      figures.add(std::move(figure), *number * (unit ? unit->scale : 1));
    else
      figures.add_without(std::move(figure), Status::error, fmt::format("its figure is {}", in_quotes(value)));
  };
  if (!latency) add("", test.sum);
  for (std::size_t row = 0; row < test.matrix.size(); ++row)
    for (std::size_t column = 0; column < test.matrix[row].size(); ++column)
      add(fmt::format("/row={}/column={}", row, column), test.matrix[row][column]);
}

}  // namespace

ForeignFile read_nvbandwidth(const ForeignInput& input) {
  FigureCollector figures;
  const std::string text = input.text();
  const bool json = text.find("\"nvbandwidth\"") != text.npos || text.find_first_not_of(" \t\r\n") == text.find('{');
  const BandwidthResults results =
      json ? results_of_json(text, input.file, figures) : TextReader(input.file, figures).read(text);
  figures.measured(context_of(results));
  ForeignWorld gpus;
  gpus.device = "cuda";
  ForeignFigure like;
  like.world = std::make_shared<const ForeignWorld>(gpus);
  for (const BandwidthTest& test : results.tests) add_test(figures, test, results.error, like);
  if (figures.empty() && !results.error.empty()) {
    ForeignFigure whole;
    whole.name = "nvbandwidth";
    figures.add_without(whole, Status::error, results.error);
  }
  return figures.take();
}

}  // namespace assay::report
