#include "harness/machine/nhc.h"

#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/machine/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace assay {

namespace {

// Words as a shell splits them, with quotes and comments, and without expansion.
std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> all;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!quote && !inside && c == '#') break;
    if (!quote && (c == ' ' || c == '\t' || c == '\r')) {
      inside = false;
      continue;
    }
    if (!inside) all.emplace_back();
    inside = true;
    if (c == quote)
      quote = 0;
    else if (!quote && (c == '"' || c == '\''))
      quote = c;
    else if (c == '\\' && quote != '\'' && i + 1 < text.size())
      all.back() += text[++i];
    else
      all.back() += c;
  }
  return all;
}

// From 0 to 1e18, so that it fits what it is kept in.
std::optional<double> number(std::string_view text) {
  const auto value = whole_number<double>(text);
  return value && *value >= 0 && *value <= 1e18 ? value : std::nullopt;
}

// "32gb", "8g", "1024" (kB): bytes, in powers of 1024.
std::optional<double> size_of(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text.ends_with('b')) text.pop_back();
  double unit = 1024;
  if (!text.empty()) {
    constexpr std::string_view units = "kmgtp";
    if (const auto found = units.find(text.back()); found != units.npos) {
      for (std::size_t i = 0; i < found; ++i) unit *= 1024;
      text.pop_back();
    }
  }
  const auto value = number(text);
  return value && *value * unit <= 1e18 ? std::optional(*value * unit) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(Expectation& to) : to_(to) {}

  // Whether the check was taken over; `remark` says what of it was not.
  bool take(const std::vector<std::string>& words, std::string& remark) {
    const std::string& check = words[0];
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    for (const std::string& word : rest)
      if (word.find('$') != word.npos) return false;  // a variable of the shell
    if (check == "check_hw_cpuinfo") return cpuinfo(rest);
    if (check == "check_hw_physmem") return size(rest, to_.memory_bytes, to_.max_memory_bytes);
    if (check == "check_hw_swap") return size(rest, to_.swap_bytes, to_.max_swap_bytes);
    if (check == "check_hw_ib") return infiniband(rest);
    if (check == "check_hw_eth") return rest.size() == 1 && ethernet(rest[0]);
    if (check == "check_gpu_count") return rest.size() == 1 && exactly(rest[0], to_.gpu_count);
    if (check.starts_with("check_fs_mount")) return mount(check.substr(14), rest, remark);
    return false;
  }

 private:
  static bool exactly(const std::string& text, std::optional<Amount>& to) {
    const auto value = number(text);
    if (value) to = Amount{static_cast<std::int64_t>(*value), true};
    return value.has_value();
  }

  bool cpuinfo(const std::vector<std::string>& rest) {
    std::optional<Amount>* const members[] = {&to_.sockets, &to_.cores, &to_.threads};
    if (rest.empty() || rest.size() > 3) return false;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (!rest[i].empty() && !exactly(rest[i], *members[i])) return false;
    return true;
  }

  // MIN MAX FUDGE, the last in percent of what is there or as a size.
  static bool size(const std::vector<std::string>& rest, std::optional<std::uint64_t>& least,
                   std::optional<std::uint64_t>& most) {
    if (rest.empty() || rest.size() > 3) return false;
    const auto low = size_of(rest[0]), high = rest.size() > 1 ? size_of(rest[1]) : std::nullopt;
    if (!low && !high) return false;
    double share = 0, fixed = 0;
    if (rest.size() == 3) {
      const bool percent = rest[2].ends_with('%');
      const auto value = percent ? number(rest[2].substr(0, rest[2].size() - 1)) : size_of(rest[2]);
      if (!value || (percent && *value > 90)) return false;
      (percent ? share : fixed) = percent ? *value / 100 : *value;
    }
    if (low) least = static_cast<std::uint64_t>(std::max(0.0, (*low - fixed) / (1 + share)));
    if (high) most = static_cast<std::uint64_t>((*high + fixed) / (1 - share));
    return true;
  }

  bool infiniband(const std::vector<std::string>& rest) {
    if (rest.size() > 2) return false;
    ExpectedPorts one;
    if (!rest.empty() && !rest[0].empty()) {
      one.rate = number(rest[0]);
      if (!one.rate) return false;
      one.rate_exactly = true;
    }
    one.count = Amount{1, false};
    if (rest.size() == 2) one.name = rest[1];
    to_.infiniband.push_back(one);
    return true;
  }

  bool ethernet(const std::string& name) {
    ExpectedPorts one;
    one.count = Amount{1, false};
    one.name = name;
    one.without_link = true;
    to_.ethernet.push_back(one);
    return true;
  }

  bool mount(std::string_view form, const std::vector<std::string>& rest, std::string& remark) {
    std::vector<std::string> places;
    ExpectedMount one;
    if (form == "_rw") one.writable = true;
    if (form == "_ro") one.writable = false;
    if (!form.empty() && form != "_rw" && form != "_ro") return false;
    if (rest.empty()) return false;
    if (!rest[0].starts_with("-")) {  // the old syntax: place, source, type, options
      places.push_back(rest[0]);
      if (rest.size() > 1) one.source = rest[1];
      if (rest.size() > 2) one.type = rest[2];
      if (rest.size() > 3) remark = "its options";
    }
    for (std::size_t i = 0; places.empty() ? i < rest.size() : i < rest.size() && rest[0].starts_with("-"); ++i) {
      const std::string& flag = rest[i];
      if (flag == "-0" || flag == "-r") continue;
      if (flag.size() < 2 || flag[0] != '-' || i + 1 >= rest.size()) return false;
      const std::string& value = rest[++i];
      if (flag == "-f" || flag == "-F")
        places.push_back(value);
      else if (flag == "-s")
        one.source = value;
      else if (flag == "-t")
        one.type = value;
      else
        remark = flag + " " + value;
    }
    for (std::string* pattern : {&one.source, &one.type})
      if (pattern->starts_with("/") && pattern->ends_with("/") && pattern->size() > 2) {
        remark = "the regular expression " + *pattern;
        pattern->clear();
      }
    for (const std::string& place : places) {
      one.place = place;
      to_.mounts.push_back(one);
    }
    return !places.empty();
  }

  Expectation& to_;
};

}  // namespace

bool is_nhc(std::string_view text) {
  for (const std::string& line : lines(text)) {
    const auto plain = trim(line);
    if (!plain.empty() && plain.front() != '#') return plain.find("||") != plain.npos;
  }
  return false;
}

Expectation read_nhc(std::string_view text, const std::string& source, const std::string& hostname) {
  Expectation expected;
  Reader reader(expected);
  int number_of_line = 0;
  for (const std::string& line : lines(text)) {
    ++number_of_line;
    const auto plain = trim(line);
    if (plain.empty() || plain.front() == '#') continue;
    const auto name = [&](const std::string& what) {
      expected.left_out.push_back(fmt::format("{}:{}: {}", source, number_of_line, what));
    };
    const auto bars = plain.find("||");
    if (bars == plain.npos) {
      name(one_line(plain));
      continue;
    }
    const auto mask = trim(plain.substr(0, bars));
    const auto check = shell_words(plain.substr(bars + 2));
    if (check.empty()) continue;
    const bool pattern = mask.find_first_of("/{!@") == mask.npos;
    if (pattern && !matches(mask, hostname)) continue;  // of other hosts
    std::string remark;
    if (!pattern || !reader.take(check, remark))
      name(one_line(pattern ? trim(plain.substr(bars + 2)) : plain));
    else if (!remark.empty())
      name(fmt::format("{} of {}", one_line(remark), check[0]));
  }
  return expected;
}

}  // namespace assay
