// Hostfiles: strips comments, splits words, reads one host per line.
#include "harness/hosts/hostfile.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/hosts/slurm.h"

#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace assay {

namespace {

constexpr int max_slots_per_host = 65536;
constexpr std::size_t max_problems = 20;
constexpr std::size_t max_bytes = std::size_t{16} << 20;

// Replaces comments by blanks; keeps line ends, and so line numbers.
std::string without_comments(std::string_view text) {
  std::string kept;
  enum { code, line, block } state = code;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto next = [&](char wanted) { return i + 1 < text.size() && text[i + 1] == wanted; };
    if (c == '\n') {
      if (state == line) state = code;
      kept += c;
    } else if (state == block) {
      if (c == '*' && next('/')) state = code, ++i;
      kept += ' ';
    } else if (state == line) {
      continue;
    } else if (c == '#' || (c == '/' && next('/'))) {
      state = line;
    } else if (c == '/' && next('*')) {
      state = block, ++i;
      kept += ' ';
    } else {
      kept += c;
    }
  }
  return kept;
}

// Words separated by blanks; an equals sign joins its neighbours: "slots = 2" is "slots=2".
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool join = false;
  for (std::size_t i = 0; i < line.size();) {
    if (std::strchr(" \t\r\v\f", line[i])) {
      ++i;
      continue;
    }
    if (line[i] == '=') {
      if (words.empty()) words.emplace_back();
      words.back() += '=';
      join = true;
      ++i;
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t\r\v\f=", i), line.size());
    if (join)
      words.back() += line.substr(i, end - i);
    else
      words.emplace_back(line.substr(i, end - i));
    join = false;
    i = end;
  }
  return words;
}

bool is_user_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == '$';
  });
}

struct Line {
  std::vector<std::string> names;  // several for a range
  AllocatedHost host;              // what is said of each
  bool excluded = false;
};

struct Bad {
  std::string what;
};

int slots_from(const std::string& name, const std::string& value) {
  const auto slots = whole_number<int>(value);
  if (!slots || *slots < 1 || *slots > max_slots_per_host)
    throw Bad{fmt::format("{}={}: must be a number from 1 to {}", name, one_line(value, 80), max_slots_per_host)};
  return *slots;
}

void read_option(const std::string& word, Line& line, std::optional<int>& max_slots) {
  static const std::vector<std::string> names = {"slots", "max_slots", "username"};
  const std::size_t equals = word.find('=');
  std::string name = word.substr(0, equals);
  std::replace(name.begin(), name.end(), '-', '_');
  const auto any_of = [&](std::initializer_list<const char*> all) {
    return std::any_of(all.begin(), all.end(), [&](const char* one) { return name == one; });
  };
  const bool slots = any_of({"slots", "count", "cpu", "cpus", "cores"});
  const bool limit = any_of({"max_slots", "slots_max", "max_count", "count_max", "max_cpus", "cpus_max"});
  const bool user = any_of({"username", "user_name", "user"});
  if (!slots && !limit && !user)
    throw Bad{fmt::format("{} is not known here{}", in_quotes(word), suggestion(word.substr(0, equals), names))};
  if (equals == word.npos || equals + 1 == word.size())
    throw Bad{fmt::format("{} lacks its value, as in {}", in_quotes(word), user ? "username=root" : "slots=4")};
  const std::string value = word.substr(equals + 1);
  if (slots) line.host.slots = slots_from(name, value);
  if (limit) max_slots = slots_from(name, value);
  if (!user) return;
  if (!is_user_name(value)) throw Bad{fmt::format("{} is no user's name", in_quotes(value))};
  line.host.user = value;
}

bool is_ip6(std::string_view text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
}

// "host:4" loses its slots. An IPv6 address stands in brackets, "[fe80::1]:4", or alone without slots.
std::optional<int> take_slots(std::string& name) {
  const std::size_t colon = name.rfind(':');
  const bool closed = colon != name.npos && colon > 0 && name[colon - 1] == ']';
  if (colon == name.npos || (!closed && name.find(':') != colon) || name.ends_with(']')) return std::nullopt;
  const std::string slots = name.substr(colon + 1);
  name.erase(colon);
  if (slots.empty()) throw Bad{fmt::format("{} lacks its number of slots, as in n1:4", in_quotes(name + ":"))};
  return slots_from("slots", slots);
}

// "n[01-64,70]" is several.
std::vector<std::string> names_of(const std::string& name) {
  if (name.find('[') == name.npos) return {name};
  if (name.front() == '[' && name.back() == ']' && is_ip6(std::string_view(name).substr(1, name.size() - 2)))
    return {name.substr(1, name.size() - 2)};
  if (name.find(':') != name.npos) throw Bad{fmt::format("{} is no host's name", in_quotes(name))};
  try {
    return parse_node_list(name, "");
  } catch (const UsageError& error) {
    throw Bad{std::string(error.what()).substr(1)};  // without the "=" after the name of a variable
  }
}

Line read_line(const std::vector<std::string>& words) {
  Line line;
  std::string name = words.front();
  if (name.starts_with('+'))
    throw Bad{fmt::format("{}: relative hosts are not understood; name the host", in_quotes(name))};
  if (name.starts_with('^')) {
    line.excluded = true;
    name.erase(0, 1);
  }
  if (const std::size_t at = name.find('@'); at != name.npos) {
    line.host.user = name.substr(0, at);
    name.erase(0, at + 1);
    if (!is_user_name(line.host.user)) throw Bad{fmt::format("{} is no user's name", in_quotes(line.host.user))};
  }
  if (name.find('=') != name.npos) throw Bad{fmt::format("{} stands where a host is expected", in_quotes(name))};
  const std::optional<int> beside_name = take_slots(name);
  line.names = names_of(name);
  for (const std::string& one : line.names)
    if (!is_host_name(one) || (one.find(':') != one.npos && !is_ip6(one)))
      throw Bad{fmt::format("{} is no host's name", in_quotes(one))};
  std::optional<int> max_slots;
  for (std::size_t i = 1; i < words.size(); ++i) read_option(words[i], line, max_slots);
  if (beside_name && line.host.slots && *beside_name != *line.host.slots)
    throw Bad{fmt::format("{}:{} and slots={} are different numbers", one_line(name), *beside_name, *line.host.slots)};
  if (beside_name) line.host.slots = beside_name;
  if (max_slots && line.host.slots && *max_slots < *line.host.slots)
    throw Bad{fmt::format("slots={} is more than max_slots={}", *line.host.slots, *max_slots)};
  if (max_slots && !line.host.slots) line.host.slots = max_slots;
  return line;
}

// "[workers]" alone on a line begins a group, as in an inventory of Ansible; an address and a range are hosts.
std::optional<std::string_view> group_of(const std::vector<std::string>& words) {
  if (words.size() != 1 || words[0].size() < 3 || words[0].front() != '[' || words[0].back() != ']')
    return std::nullopt;
  const auto inside = std::string_view(words[0]).substr(1, words[0].size() - 2);
  const bool name = std::all_of(inside.begin(), inside.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ':';
  });
  const bool range = inside.find_first_not_of("0123456789,-") == inside.npos;
  return name && !range && !is_ip6(inside) ? std::optional(inside) : std::nullopt;
}

}  // namespace

bool is_host_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':'; });
}

std::vector<AllocatedHost> parse_hostfile(std::string_view text, const std::string& source) {
  std::vector<AllocatedHost> hosts;
  std::unordered_map<std::string, std::size_t> places;  // of the hosts
  std::unordered_set<std::string> excluded;
  std::vector<std::string> problems;
  bool in_settings = false;
  std::size_t bad_lines = 0;
  const std::string plain = without_comments(text);
  std::string_view rest = plain;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::vector<std::string> words = words_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (words.empty()) continue;
    if (const auto group = group_of(words)) {
      // A group's variables and the names of its groups are no hosts.
      in_settings = group->ends_with(":vars") || group->ends_with(":children");
      continue;
    }
    if (in_settings) continue;
    try {
      const Line line = read_line(words);
      for (const std::string& name : line.names) {
        if (line.excluded) {
          excluded.insert(name);
          continue;
        }
        const auto [place, fresh] = places.try_emplace(name, hosts.size());
        if (fresh) {
          if (hosts.size() == max_hosts) throw Bad{fmt::format("more than {} hosts", max_hosts)};
          hosts.push_back(line.host);
          hosts.back().name = name;
          continue;
        }
        AllocatedHost& same = hosts[place->second];
        const int slots = same.slots.value_or(1) + line.host.slots.value_or(1);
        if (slots > max_slots_per_host)
          throw Bad{fmt::format("more than {} slots on {}", max_slots_per_host, same.name)};
        same.slots = slots;
        if (same.user.empty()) same.user = line.host.user;
      }
    } catch (const Bad& bad) {
      if (++bad_lines <= max_problems) problems.push_back(fmt::format("{}:{}: {}", source, number, bad.what));
    }
  }
  if (!problems.empty()) {
    std::string all = fmt::format("{}", fmt::join(problems, "\n"));
    if (bad_lines > max_problems) all += fmt::format("\n{}: and {} more", source, bad_lines - max_problems);
    throw UsageError(all);
  }
  std::erase_if(hosts, [&](const AllocatedHost& host) { return excluded.contains(host.name); });
  return hosts;
}

std::vector<AllocatedHost> read_hostfile(const std::filesystem::path& path, const std::string& flag) {
  std::string text;
  try {
    text = read_whole(path, max_bytes, Pipes::read);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", flag, error.what()));
  }
  std::vector<AllocatedHost> hosts = parse_hostfile(text, one_line(path.string()));
  if (hosts.empty()) throw UsageError(fmt::format("{} {}: names no host", flag, one_line(path.string())));
  return hosts;
}

}  // namespace assay
