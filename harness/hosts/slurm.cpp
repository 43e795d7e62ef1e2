// Slurm's node lists and task counts, and the allocation from them.
#include "harness/hosts/slurm.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/hosts/hostfile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <system_error>

namespace assay {

namespace {

constexpr std::size_t max_name_length = 255;

// One node list, read from the left.
class NodeList {
 public:
  NodeList(std::string_view text, const std::string& variable) : text_(text), variable_(variable) {}

  std::vector<std::string> read() {
    std::vector<std::string> all;
    do {
      std::vector<std::string> names = entry();
      if (all.size() + names.size() > max_hosts) fail(fmt::format("more than {} hosts", max_hosts));
      std::move(names.begin(), names.end(), std::back_inserter(all));
    } while (accept(','));
    if (at_ != text_.size()) fail("a bracket is closed that was not opened");
    return all;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("{}={}: {}", variable_, one_line(text_), what));
  }
  bool accept(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // "rack[1-2]n[01-12]x": text and brackets alternate.
  std::vector<std::string> entry() {
    std::vector<std::string> names(1);
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']') {
      if (accept('[')) {
        const std::vector<std::string> middles = bracket();
        if (names.size() * middles.size() > max_hosts) fail(fmt::format("more than {} hosts", max_hosts));
        if (names.front().size() + middles.front().size() > max_name_length) fail("a name is longer than any host's");
        std::vector<std::string> crossed;
        for (const std::string& name : names)
          for (const std::string& middle : middles) crossed.push_back(name + middle);
        names = std::move(crossed);
        continue;
      }
      for (std::string& name : names) name += text_[at_];
      ++at_;
    }
    if (names.front().empty()) fail("a host has no name");
    // They differ only in their numbers, and the last one is the longest.
    if (!is_host_name(names.front()) || !is_host_name(names.back()))
      fail(fmt::format("{} is no host's name", in_quotes(names.front())));
    return names;
  }

  // "1-3,07]" with its closing bracket.
  std::vector<std::string> bracket() {
    std::vector<std::string> numbers;
    do {
      const std::string_view first = digits();
      const bool range = accept('-');
      const std::string_view last = range ? digits() : first;
      if (first.size() > max_name_length) fail("a number is longer than any host's name");
      const std::int64_t low = value(first), high = value(last);
      if (high < low) fail(fmt::format("the range {}-{} runs backwards", first, last));
      if (static_cast<std::size_t>(high - low) >= max_hosts) fail(fmt::format("more than {} hosts", max_hosts));
      // Keeps the first number's zeros: 07-10 is 07, 08, 09, 10.
      for (std::int64_t number = low; number <= high; ++number)
        numbers.push_back(fmt::format("{:0{}}", number, first.size()));
      if (numbers.size() > max_hosts) fail(fmt::format("more than {} hosts", max_hosts));
    } while (accept(','));
    if (!accept(']')) fail("a bracket is not closed, or holds more than numbers and ranges");
    return numbers;
  }

  std::string_view digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == start) fail("a bracket holds more than numbers and ranges");
    return text_.substr(start, at_ - start);
  }
  std::int64_t value(std::string_view text) const {
    const auto number = whole_number<std::int64_t>(text);
    if (!number) fail(fmt::format("{} is too large", text));
    return *number;
  }

  std::string_view text_;
  const std::string& variable_;
  std::size_t at_ = 0;
};

int number_from(const Environment& environment, const char* variable) {
  const std::string text = environment(variable).value_or("0");
  const auto value = whole_number<int>(text);
  if (!value || *value < 0) throw UsageError(fmt::format("{}={}: not a number from 0 on", variable, one_line(text)));
  return *value;
}

}  // namespace

std::vector<std::string> parse_node_list(std::string_view text, const std::string& variable) {
  return NodeList(text, variable).read();
}

std::string node_list(const std::vector<std::string>& names) {
  struct Range {
    std::string first, last;
  };
  constexpr std::size_t max_digits = 9;
  std::map<std::string, std::set<std::pair<std::size_t, std::string>>> numbers;  // by what stands before them
  for (const std::string& name : names) {
    const bool address = name.find(':') != name.npos;
    const std::size_t digits =
        address ? 0 : std::min(name.size() - 1 - name.find_last_not_of("0123456789"), max_digits);
    const std::string number = name.substr(name.size() - digits);
    numbers[name.substr(0, name.size() - digits)].emplace(digits, number);
  }
  std::vector<std::string> words;
  for (const auto& [head, all] : numbers) {
    std::vector<Range> ranges;
    for (const auto& [digits, number] : all) {
      // "9-10" counts on from 9 to 10, "09-10" does too, but neither reaches "010".
      const bool counts_on =
          !ranges.empty() && digits > 0 && !ranges.back().last.empty() &&
          std::stol(number) == std::stol(ranges.back().last) + 1 &&
          (digits == ranges.back().first.size() || (number.front() != '0' && ranges.back().first.front() != '0'));
      if (counts_on)
        ranges.back().last = number;
      else
        ranges.push_back({number, number});
    }
    std::vector<std::string> inside;
    if (all.begin()->first == 0) {  // the name without a number
      words.push_back(head);
      ranges.erase(ranges.begin());
    }
    for (const Range& one : ranges) inside.push_back(one.first == one.last ? one.first : one.first + "-" + one.last);
    if (ranges.size() == 1 && ranges[0].first == ranges[0].last)
      words.push_back(head + inside[0]);
    else if (!inside.empty())
      words.push_back(fmt::format("{}[{}]", head, fmt::join(inside, ",")));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

std::vector<int> parse_tasks_per_node(std::string_view text, const std::string& variable) {
  std::vector<int> counts;
  std::string_view rest = text;
  const auto wrong = [&] {
    return UsageError(fmt::format("{}={}: not a list as in 2(x3),1", variable, one_line(text)));
  };
  const auto number = [&](int least) {
    int value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || value < least) throw wrong();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return value;
  };
  const auto accept = [&](std::string_view word) {
    const bool there = rest.starts_with(word);
    if (there) rest.remove_prefix(word.size());
    return there;
  };
  do {
    const int count = number(0);
    int times = 1;
    if (accept("(x")) {
      times = number(1);
      if (!accept(")")) throw wrong();
    }
    if (counts.size() + static_cast<std::size_t>(times) > max_hosts)
      throw UsageError(fmt::format("{}={}: more than {} hosts", variable, one_line(text), max_hosts));
    counts.insert(counts.end(), static_cast<std::size_t>(times), count);
  } while (accept(","));
  if (!rest.empty()) throw wrong();
  return counts;
}

std::optional<Allocation> slurm_allocation(const Environment& environment) {
  const auto job = environment("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  Allocation allocation;
  allocation.source = LaunchSource::slurm;
  allocation.origin = fmt::format("Slurm job {}", one_line(*job, 40));
  // Only tasks of srun have these; a batch script or an interactive shell does not.
  const bool step = environment("SLURM_STEP_NODELIST") && environment("SLURM_STEP_NUM_TASKS");
  const char* nodes = step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const char* tasks = step ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const auto list = environment(nodes);
  if (!list) return std::nullopt;
  // If nobody asked for tasks, Slurm counts CPUs instead.
  const bool counted = step || environment("SLURM_NTASKS") || environment("SLURM_NTASKS_PER_NODE");
  std::vector<int> slots;
  if (counted)
    if (const auto text = environment(tasks)) slots = parse_tasks_per_node(*text, tasks);
  const std::vector<std::string> names = parse_node_list(*list, nodes);
  if (!slots.empty() && slots.size() != names.size())
    throw UsageError(fmt::format("{}={} counts {} hosts, {} names {}", tasks, one_line(*environment(tasks)),
                                 slots.size(), nodes, names.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!slots.empty() && slots[i] == 0) continue;
    AllocatedHost host{names[i], std::nullopt, "", is_this_host(names[i], environment)};
    if (!slots.empty()) host.slots = slots[i];
    allocation.hosts.push_back(std::move(host));
  }
  if (allocation.hosts.empty()) throw UsageError(fmt::format("{}={}: no tasks", tasks, one_line(*environment(tasks))));
  if (step) {
    allocation.rank = number_from(environment, "SLURM_PROCID");
    allocation.size = number_from(environment, "SLURM_STEP_NUM_TASKS");
    allocation.local_rank = number_from(environment, "SLURM_LOCALID");
    if (allocation.rank > 0) allocation.part = Part::bystander;
  }
  return allocation;
}

}  // namespace assay
