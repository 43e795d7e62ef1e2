#include "cli/old_spellings.h"

#include "harness/core/streams.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace assay::cli {

namespace {

// A subcommand, or a subcommand and one of its flags; FILE stands for a word after the flag, other than a folder's
// path.
struct OldSpelling {
  std::string_view old, now, removed_in;
};

constexpr OldSpelling old_spellings[] = {
    {"env --audit", "audit", "1.1"},
    {"history reanalyse", "history check --again", "1.1"},
    {"history merge", "history store merge", "1.1"},
    {"history alias", "history store alias", "1.1"},
    {"history compact", "history store compact", "1.1"},
    {"history salvage", "history store salvage", "1.1"},
    {"size --budget", "size --max-usd", "1.1"},
    {"size --gpus", "size --count", "1.1"},
    {"crosscheck --from", "crosscheck --min-bytes", "1.1"},
    {"crosscheck --to", "crosscheck --max-bytes", "1.1"},
    {"accept --json FILE", "accept --json=FILE", "1.1"},
    {"check --json FILE", "check --json=FILE", "1.1"},
    {"compare --json FILE", "compare --json=FILE", "1.1"},
    {"diagnose --json FILE", "diagnose --json=FILE", "1.1"},
    {"floors learn --json FILE", "floors learn --json=FILE", "1.1"},
    {"history check --json FILE", "history check --json=FILE", "1.1"},
    {"history report --json FILE", "history report --json=FILE", "1.1"},
    {"report --json FILE", "report --json=FILE", "1.1"},
};

struct Parts {
  std::vector<std::string> verb;
  std::string flag;   // empty: the subcommand alone
  bool file = false;  // a word after the flag, or after its "="
};

Parts parts_of(std::string_view spelling) {
  Parts parts;
  for (std::string& word : CLI::detail::split(std::string(spelling), ' ')) {
    if (word.starts_with("--"))
      parts.flag = word.substr(0, word.find('='));
    else if (parts.flag.empty())
      parts.verb.push_back(std::move(word));
    else
      parts.file = true;
  }
  return parts;
}

// Tells a file from a flag and from an existing folder; "-" is stdout.
bool is_file(const std::string& word) {
  std::error_code none;
  return (word == "-" || !word.starts_with("-")) && !std::filesystem::is_directory(word, none);
}

// The place of the old flag, or the number of words. Values of other flags of `app` are no flags.
std::size_t find(const Parts& old, const CLI::App& app, const std::vector<std::string>& words) {
  for (std::size_t i = old.verb.size(); i < words.size() && words[i] != "--"; ++i) {
    if (!old.file && (words[i] == old.flag || words[i].starts_with(old.flag + "="))) return i;
    if (old.file && words[i] == old.flag && i + 1 < words.size() && is_file(words[i + 1])) return i;
    if (const CLI::Option* option = words[i].starts_with("-") ? app.get_option_no_throw(words[i]) : nullptr)
      i += static_cast<std::size_t>(option->get_items_expected_min());
  }
  return words.size();
}

// Replaces one use; false if there is none.
bool replace(const Parts& old, const Parts& now, const CLI::App& root, std::vector<std::string>& words) {
  if (words.size() < old.verb.size() || !std::equal(old.verb.begin(), old.verb.end(), words.begin())) return false;
  std::vector<std::string> verb = now.verb;
  if (old.flag.empty()) {
    if (!now.flag.empty()) verb.push_back(now.flag);
  } else {
    const CLI::App* app = &root;
    for (const std::string& name : now.verb) app = app->get_subcommand(name);
    const auto place = words.begin() + static_cast<std::ptrdiff_t>(find(old, *app, words));
    if (place >= words.end()) return false;
    if (old.file) {
      *place += "=" + place[1];
      words.erase(place + 1);
    } else if (now.flag.empty()) {
      words.erase(place);
    } else {
      place->replace(0, old.flag.size(), now.flag);
    }
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(old.verb.size()));
  words.insert(words.begin(), verb.begin(), verb.end());
  return true;
}

}  // namespace

std::vector<std::string> in_new_spelling(const CLI::App& root, std::vector<std::string> words) {
  std::vector<std::string> notes;
  for (const OldSpelling& one : old_spellings) {
    const Parts old = parts_of(one.old), now = parts_of(one.now);
    bool used = false;
    while (replace(old, now, root, words)) used = true;
    if (used)
      notes.push_back(
          fmt::format("write \"{}\" instead of \"{}\", which {} removes", one.now, one.old, one.removed_in));
  }
  if (!notes.empty()) say("assay: {}\n", fmt::join(notes, "; "));
  return words;
}

}  // namespace assay::cli
