#include "harness/figures/mentions.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/quantity.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace assay {

namespace {

constexpr std::string_view blanks = " \t\v\f";
constexpr std::string_view joints = "./:";  // within a name: "train/loss", "train.loss"
constexpr std::size_t line_limit = 512;     // bytes of a line that are looked at around a name
constexpr std::string_view marks = ",;|()[]{}<>\"'`*";

bool is_alphabetic(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_one_of(char c, std::string_view of) { return of.find(c) != of.npos; }

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(blanks, at), text.size());
}

std::string_view word_at(std::string_view text, std::size_t at) {
  return text.substr(at, std::min(text.find_first_of(blanks, at), text.size()) - at);
}

std::vector<std::string_view> words_of(std::string_view line, std::size_t at_most) {
  std::vector<std::string_view> words;
  for (std::size_t at = skip_blanks(line, 0); at < line.size() && words.size() < at_most; at = skip_blanks(line, at)) {
    words.push_back(word_at(line, at));
    at += words.back().size();
  }
  return words;
}

bool starts_number(std::string_view word) {
  const std::size_t at = word.find_first_not_of("+-.");
  return at != word.npos && std::isdigit(static_cast<unsigned char>(word[at])) && at <= 2;
}

// "nan", "-inf".
bool is_not_finite(std::string_view word) {
  const std::string plain = lower_case(word.substr(std::min(word.find_first_not_of("+-"), word.size())));
  return plain == "nan" || plain == "inf" || plain == "infinity";
}

// "name value unit better"
bool is_full_line(const std::vector<std::string_view>& words) {
  return words.size() == 4 && number_from(words[1]) && from_word<Better>(words[3]) && !is_one_of(words[0].back(), ":=");
}

// JSON objects in a text, from first to last; those on a line of their own may span several lines.
class Objects {
 public:
  explicit Objects(std::string_view text) : text_(text) {}

  // The next one, and where it is.
  std::optional<Json> next() {
    for (begin_ = text_.find('{', end_); begin_ != text_.npos; begin_ = text_.find('{', begin_ + 1)) {
      end_ = end_of(begin_);
      if (end_ == text_.npos) continue;
      try {
        return parse_printed_json(std::string(text_.substr(begin_, end_ - begin_)));
      } catch (const Error&) {
        // text in braces
      }
    }
    return std::nullopt;
  }
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }

 private:
  std::size_t end_of(std::size_t begin) {
    for (; line_end_ < begin; line_end_ = std::min(text_.find('\n', line_), text_.size())) line_ = line_end_ + 1;
    const bool spans = !unclosed_ && text_.substr(line_, begin - line_).find_first_not_of(" \t[,") == text_.npos;
    int depth = 0;
    bool quoted = false;
    for (std::size_t at = begin; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '\n' && (quoted || !spans)) return text_.npos;
      if (quoted && c == '\\')
        ++at;
      else if (c == '"')
        quoted = !quoted;
      else if (!quoted && c == '{' && ++depth > 64)
        return text_.npos;
      else if (!quoted && c == '}' && --depth == 0)
        return at + 1;
    }
    // The end is looked for once only, which keeps the work linear.
    unclosed_ = unclosed_ || spans;
    return text_.npos;
  }

  std::string_view text_;
  std::size_t begin_ = 0, end_ = 0;
  std::size_t line_ = 0, line_end_ = std::min(text_.find('\n'), text_.size());  // where the line of begin_ is
  bool unclosed_ = false;
};

void walk(const Json& object, const std::string& path, const MentionSink& add);

// Reads what an object says of all its members.
Mention labels_of(const Json& object) {
  Mention like;
  like.case_name = text_member(object, "/case"), like.metric = text_member(object, "/metric");
  if (const std::string unit = text_member(object, "/unit"); !unit.empty()) like.unit = unit;
  like.better = from_word<Better>(text_member(object, "/better"));
  return like;
}

void walk_member(const Json& value, const std::string& name, Mention like, const MentionSink& add) {
  if (value.is_object()) return walk(value, name, add);
  if (value.is_array() && std::ranges::any_of(value, &Json::is_object)) {
    std::size_t index = 0;
    for (const Json& one : value) {
      const bool named = !text_member(one, "/name").empty() || !text_member(one, "/case").empty();
      if (one.is_object()) walk(one, named ? name : fmt::format("{}.{}", name, index), add);
      ++index;
    }
    return;
  }
  like.name = name;
  if (value.is_number())
    like.value = value.get<double>();
  else
    like.not_a_number =
        value.is_null() ? "null or NaN" : fmt::format("{} {}", kind_of(value), in_quotes(scalar_text(value), 40));
  add(std::move(like));
}

// An object that says "name" or "case" names its members "CASE:MEMBER"; its "value" is "CASE", "METRIC" or
// "CASE:METRIC".
void walk(const Json& object, const std::string& path, const MentionSink& add) {
  Mention like = labels_of(object);
  const std::string name = text_member(object, "/name"), label = name.empty() ? like.case_name : name;
  like.case_name = label;
  const auto below = [](const std::string& above, const char* joint, const std::string& member) {
    return above.empty() ? member : above + joint + member;
  };
  const std::string base = label.empty() ? path : below(path, ".", label);
  for (const auto& [member, value] : object.items()) {
    if (path.empty() && member == "benchmarks" && value.is_array()) {
      each_gbench_mention(value, add);
      continue;
    }
    std::string full = below(base, label.empty() ? "." : ":", member);
    if (member == "value" && !(base.empty() && like.metric.empty()))
      full = like.metric.empty() ? base : below(base, label.empty() ? "." : ":", like.metric);
    walk_member(value, full, like, add);
  }
}

// Words before a name that belong to it: "INFO eval " of "[12:30] INFO eval throughput", "train/" of "train/loss".
std::string words_before(std::string_view before) {
  std::string words;
  before.remove_prefix(before.size() - std::min(before.size(), line_limit));
  if (!before.empty() && is_one_of(before.back(), joints)) {
    std::size_t at = before.size();
    while (at > 0 && !is_one_of(before[at - 1], blanks) && !is_one_of(before[at - 1], marks)) --at;
    words = before.substr(at);
    before = before.substr(0, at);
  }
  const auto last_word = [](std::string_view& text) {
    while (!text.empty() && is_one_of(text.back(), blanks)) text.remove_suffix(1);
    const std::size_t gap = text.find_last_of(blanks);
    const std::string_view word = text.substr(gap == text.npos ? 0 : gap + 1);
    text.remove_suffix(word.size());
    return word;
  };
  while (!before.empty() && is_one_of(before.back(), blanks)) {
    const std::string_view word = last_word(before);
    const bool letters = std::ranges::any_of(word, is_alphabetic);
    // A comment's "#" tells its figures from those of the lines.
    if (word.empty() || (!letters && word != "#") || is_one_of(word.back(), ",;|)]}>=:") || starts_number(word) ||
        word.find('=') != word.npos || starts_number(word.substr(std::min(word.find(':'), word.size() - 1) + 1)))
      break;
    std::string_view further = before;
    if (base_unit(word) && starts_number(last_word(further))) break;
    words = fmt::format("{} {}", word, words);
  }
  return words;
}

// The beginning of a text, without a part of a word.
std::string_view whole_words(std::string_view text) {
  if (text.size() <= line_limit) return text;
  text = text.substr(0, line_limit);
  return text.substr(0, text.find_last_of(blanks) + 1);  // npos + 1 is 0
}

// Reads what follows a name on its line; false if it is no mention.
bool read_behind(std::string_view rest, Mention& mention, bool begins_line) {
  std::size_t at = !rest.empty() && is_one_of(rest.front(), "\"'`") ? 1 : 0;
  const std::size_t gap = at;
  at = skip_blanks(rest, at);
  const bool delimited = at < rest.size() && is_one_of(rest[at], ":=") && rest.substr(at + 1, 1) != rest.substr(at, 1);
  if (!delimited && at == gap) return false;
  // "a:b" is one name rather than a name and what is no number.
  const bool joined = delimited && rest[at] == ':' && at + 1 < rest.size() && is_alphabetic(rest[at + 1]);
  if (delimited) at = skip_blanks(rest, at + 1);
  if (delimited && at < rest.size() && is_one_of(rest[at], "\"'")) ++at;
  const std::string_view value = rest.substr(at);
  const auto words = words_of(value, 3);
  if (words.empty() && !delimited) return false;
  // "value unit better" keeps any unit.
  if (const auto number = words.empty() ? std::nullopt : number_from(words[0]);
      number && words.size() == 3 && from_word<Better>(words[2])) {
    mention.value = *number, mention.unit = std::string(words[1]), mention.better = from_word<Better>(words[2]);
    return true;
  }
  if (const auto found = quantity_at(value)) {
    mention.value = found->value, mention.unit = found->unit;
    mention.better = from_word<Better>(word_at(value, skip_blanks(value, found->bytes)));
    return true;
  }
  const std::string_view word = words.empty() ? "" : words[0];
  mention.not_a_number = word.empty() ? "nothing" : in_quotes(word);
  const auto status = from_word<Status>(word);
  const bool says_why = begins_line && status && *status != Status::ok;
  if (says_why) mention.not_a_number = one_line(value);
  mention.prose = (!delimited || joined) && !says_why && !is_not_finite(word) && !starts_number(word);
  return true;
}

// Progress bars print their rate without a name, which its unit then is: "9.87it/s", "1.25s/it".
std::optional<double> progress_rate(std::string_view before, std::string_view name) {
  if (name != "it/s" && name != "s/it") return std::nullopt;
  const std::size_t gap = before.find_last_not_of("0123456789.,");
  return number_from(before.substr(gap == before.npos ? 0 : gap + 1));
}

void each_text_mention(std::string_view text, const std::string& name, const MentionSink& add) {
  std::string_view line;
  std::vector<std::string_view> words;
  std::size_t begin = 0, end = 0;  // of the line
  bool full = false;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    if (at >= end) {
      if (at > 0) begin = text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
      end = std::min(text.find('\n', at), text.size());
      line = text.substr(begin, end - begin);
      words = words_of(line, 5);
      full = is_full_line(words);
    }
    const std::string_view before = line.substr(0, at - begin), behind = line.substr(before.size() + name.size());
    if (const auto rate = progress_rate(before, name)) {
      add({.name = name, .value = *rate, .unit = name});
      continue;
    }
    if (!before.empty() && !is_one_of(before.back(), blanks) && !is_one_of(before.back(), marks) &&
        !is_one_of(before.back(), joints))
      continue;
    // A full line's name is its first word, whatever is in it.
    if (full && line.data() + before.size() + name.size() != words[0].data() + words[0].size()) continue;
    Mention mention{words_before(before) + name};
    const bool begins_line = words.empty() || words[0].data() >= behind.data() - name.size();
    if (read_behind(whole_words(behind), mention, begins_line)) add(std::move(mention));
  }
}

// Blanks out the objects, so that what remains is text.
std::string without_objects(const std::string& text, Mentions& found, const std::function<void(const Json&)>& look) {
  std::string rest = text;
  const std::size_t end_of_text = std::min(text.find_last_not_of(" \t\r\n"), text.size() - 1) + 1;
  Objects objects(text);
  while (const auto object = objects.next()) {
    look(*object);
    for (std::size_t i = objects.begin(); i < objects.end(); ++i)
      if (rest[i] != '\n') rest[i] = ' ';
    if (objects.end() < end_of_text || text.find('\n', objects.begin()) < objects.end()) continue;
    if (skip_blanks(text, text.rfind('\n', objects.begin()) + 1) == objects.begin())
      for (const auto& [member, value] : object->items())
        if (!value.is_structured())
          walk_member(value, member, labels_of(*object), [&](Mention&& one) { found.last.push_back(std::move(one)); });
  }
  return rest;
}

}  // namespace

NameMatch match_of(const Mention& mention, std::string_view name) {
  const std::string_view all = mention.name;
  if (all == name) return NameMatch::whole;
  if (all.starts_with("gbench:") && all.ends_with(':'))
    return name.starts_with(all) && name.find(':', all.size()) == name.npos ? NameMatch::whole : NameMatch::none;
  const bool ends = all.size() > name.size() && all.ends_with(name) && !all.starts_with("gbench:");
  const char joint = ends ? all[all.size() - name.size() - 1] : 'x';
  return is_one_of(joint, joints) || is_one_of(joint, blanks) ? NameMatch::end : NameMatch::none;
}

std::string visible_text(std::string_view output) {
  std::string shown;
  shown.reserve(output.size());
  std::size_t line = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const char c = output[i];
    if (c == '\x1b') {
      const auto next_is = [&](auto&& test) {
        return i + 1 < output.size() && output[i + 1] != '\n' && test(output[i + 1]);
      };
      const auto take = [&](auto&& test) {
        while (next_is(test)) ++i;
      };
      const auto any = [](char) { return true; };
      if (next_is([](char next) { return next == '['; })) {  // up to a letter: colours, a cleared line
        ++i, take([](char next) { return next < '@'; });
      } else if (next_is([](char next) { return next == ']'; })) {  // a title or a link, up to BEL or ESC backslash
        take([](char next) { return next != '\a' && next != '\x1b'; });
        if (next_is([](char next) { return next == '\x1b'; })) ++i;
      } else {
        take([](char next) { return next >= ' ' && next <= '/'; });
      }
      if (next_is(any)) ++i;
    } else if (c == '\r') {
      const std::size_t next = output.find_first_not_of('\r', i);
      if (next != output.npos && output[next] != '\n') shown.resize(line);
    } else {
      shown += c;
      if (c == '\n') line = shown.size();
    }
  }
  return shown;
}

Mentions mentions_of(std::string_view output, std::span<const std::string> names) {
  Mentions found;
  const std::string text = visible_text(output);
  found.last_line = last_lines(text, 1);
  const MentionSink keep = [&](Mention&& one) {
    const auto name =
        std::ranges::find_if(names, [&](const std::string& each) { return match_of(one, each) != NameMatch::none; });
    if (name == names.end()) return;
    if (one.name.ends_with(':')) one.name = *name;
    found.all.push_back(std::move(one));
  };
  const std::string rest = without_objects(text, found, [&](const Json& object) { walk(object, "", keep); });
  for (const std::string& name : names) each_text_mention(rest, name, keep);
  return found;
}

std::vector<std::string> printed_names(std::string_view output) {
  constexpr std::size_t at_most = 1000;
  std::vector<std::string> names;
  std::set<std::string> known;
  const MentionSink keep = [&](Mention&& one) {
    if (one.not_a_number.empty() && names.size() < at_most && known.insert(one.name).second)
      names.push_back(std::move(one.name));
  };
  Mentions unused;
  const std::string text = visible_text(output);
  const std::string rest = without_objects(text, unused, [&](const Json& object) { walk(object, "", keep); });
  for (std::size_t begin = 0; begin < rest.size() && names.size() < at_most;) {
    const std::size_t end = std::min(rest.find('\n', begin), rest.size());
    const std::string_view line(rest.data() + begin, std::min(end - begin, line_limit));
    begin = end + 1;
    const auto words = words_of(line, 5);
    if (words.size() >= 2 && words.size() <= 4 && number_from(words[1]) && !is_one_of(words[0].back(), ":=")) {
      keep({std::string(words[0])});
      continue;
    }
    for (std::size_t at = line.find_first_of(":="); at != line.npos; at = line.find_first_of(":=", at + 1)) {
      const std::size_t value = skip_blanks(line, at + 1);
      std::string_view before = line.substr(0, at);
      before.remove_suffix(before.size() - std::min(before.find_last_not_of(blanks) + 1, before.size()));
      const std::size_t gap = before.find_last_of(std::string(blanks) + std::string(marks));
      const std::string_view word = before.substr(gap == before.npos ? 0 : gap + 1);
      if (!word.empty() && !starts_number(word) && quantity_at(line.substr(value)))
        keep({words_before(before.substr(0, before.size() - word.size())) + std::string(word)});
    }
  }
  return names;
}

}  // namespace assay
