// Secrets are recognised by the name before them, by their place in a URL, or by the shape that their issuer gives them
// (GitHub: "Behind GitHub's new authentication token formats"; JSON Web Tokens: RFC 7519; PEM: RFC 7468).
#include "harness/core/secrets.h"

#include "harness/core/text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace assay {

namespace {

using Chars = bool (*)(char);

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
bool is_alnum(char c) { return is_letter(c) || is_digit(c); }
constexpr auto word_chars = [] {
  std::array<bool, 256> is{};
  for (const char* c = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"; *c; ++c)
    is[static_cast<unsigned char>(*c)] = true;
  return is;
}();
bool is_word(char c) { return word_chars[static_cast<unsigned char>(c)]; }
bool is_token(char c) { return is_word(c) || c == '.'; }
bool is_base64(char c) { return is_alnum(c) || c == '+' || c == '/' || c == '='; }
bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

bool any(std::string_view text, Chars which) { return std::ranges::any_of(text, which); }
bool all(std::string_view text, Chars which) { return std::ranges::all_of(text, which); }
char small_letter(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
// Whether the word is in a list whose words stand between spaces, the first and the last as well.
bool is_one_of(std::string_view word, std::string_view words) {
  return words.find(' ' + lower_case(word) + ' ') != words.npos;
}

// What is issued begins with `start`, and goes on for at least `least` characters of this kind.
struct Shape {
  std::string_view start;
  Chars rest;
  std::size_t least;
};
constexpr auto shapes = std::to_array<Shape>({
    {"AKIA", is_alnum, 16},  {"ASIA", is_alnum, 16}, {"ghp_", is_alnum, 16}, {"gho_", is_alnum, 16},
    {"ghu_", is_alnum, 16},  {"ghs_", is_alnum, 16}, {"ghr_", is_alnum, 16}, {"github_pat_", is_word, 16},
    {"glpat-", is_word, 16}, {"hf_", is_alnum, 16},  {"npm_", is_alnum, 30}, {"pypi-", is_word, 40},
    {"xoxa-", is_word, 10},  {"xoxb-", is_word, 10}, {"xoxe-", is_word, 10}, {"xoxp-", is_word, 10},
    {"xoxr-", is_word, 10},  {"xoxs-", is_word, 10}, {"xapp-", is_word, 16}, {"sk-", is_word, 16},
    {"AIza", is_word, 24},   {"eyJ", is_token, 24},
});

// What a name says of its value. A weak name also stands for other things, such as keys of sorting and tokens of a
// language model, so the value must look like a secret as well.
enum class Naming { none, weak, strong };

// The start of the last word of a name: "KEY" of "API_KEY" and "api-KEY", "Key" of "apiKey".
std::size_t last_word(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && is_alnum(name[at - 1])) {
    --at;
    if (at > 0 && is_upper(name[at]) && !is_upper(name[at - 1])) break;
  }
  return at;
}

// Whether a name ends as the words that naming() knows: nearly none does, and every word of every record is asked.
bool ends_as_secrets(std::string_view name) {
  constexpr auto ends =
      std::to_array<std::string_view>({"ret", "ord", "swd", "ase", "key", "ken", "ion", "ial", "als"});
  if (name.size() < 3) return false;
  const std::array<char, 3> end = {small_letter(name.end()[-3]), small_letter(name.end()[-2]),
                                   small_letter(name.back())};
  return std::ranges::any_of(
      ends, [&](std::string_view one) { return one[0] == end[0] && one[1] == end[1] && one[2] == end[2]; });
}

Naming naming(std::string_view name) {
  constexpr auto strong = std::to_array<std::string_view>(
      {"secret", "password", "passwd", "passphrase", "apikey", "accesskey", "secretkey", "privatekey", "authtoken",
       "accesstoken", "authorization", "credential", "credentials"});
  // Whose keys and tokens are secrets.
  constexpr std::string_view owners =
      " access account admin agent anthropic api app auth aws azure bearer bot client csrf deploy encryption gcp gh "
      "git "
      "github gitlab google hf hub huggingface id jwt license master npm oauth openai private pypi refresh runner "
      "secret "
      "security service session shared signing slack ssh storage user vault wandb webhook ";
  constexpr std::size_t longest = 64;
  if (name.size() > longest) name.remove_prefix(name.size() - longest);
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  if (!ends_as_secrets(name)) return Naming::none;
  const std::size_t at = last_word(name);
  const std::string word = lower_case(name.substr(at));
  if (std::ranges::any_of(strong, [&](std::string_view one) { return word.ends_with(one); })) return Naming::strong;
  if (word != "key" && word != "token") return Naming::none;
  std::string_view before = name.substr(0, at);
  while (!before.empty() && !is_alnum(before.back())) before.remove_suffix(1);
  if (before.empty()) return Naming::weak;
  const bool variable = std::ranges::none_of(name, [](char c) { return is_letter(c) && !is_upper(c); });  // HF_TOKEN
  return variable || is_one_of(before.substr(last_word(before)), owners) ? Naming::strong : Naming::weak;
}

// Whether a text is a number, with or without a unit: "128", "100M", "2.5ms", "0x1f".
bool is_number(std::string_view text) {
  if (text.starts_with("0x")) return true;
  std::size_t end = text.size();
  while (end > 0 && text.size() - end < 5 && (is_letter(text[end - 1]) || text[end - 1] == '%' || text[end - 1] == '/'))
    --end;
  return end > 0 && std::ranges::all_of(text.substr(0, end), [](char c) {
           return is_digit(c) || std::string_view(".,_+-eE:").find(c) != std::string_view::npos;
         });
}

// Element types look random, but are values of keys ("key=bfloat16").
bool is_element_type(std::string_view text) {
  std::size_t letters = 0;
  while (letters < text.size() && is_letter(text[letters])) ++letters;
  return is_one_of(text.substr(0, letters), " int uint float bfloat fp bf tf complex ");
}

bool looks_random(std::string_view value, std::size_t shortest) {
  constexpr std::size_t always = 32;  // no word of a language is as long
  if (value.size() < shortest || is_number(value) || is_element_type(value) || any(value, is_space)) return false;
  if (value.find('/') != value.npos && value.find('=') < value.size() - 2) return false;  // the key of a case
  return (any(value, is_digit) && any(value, is_letter)) || (value.size() >= always && all(value, is_token));
}

// Whether a value is a secret, given what its name says. `bare`: the name is only "key" or "token".
bool counts(Naming name, std::string_view value, bool bare) {
  constexpr std::size_t shortest_bare = 6, shortest = 20;
  if (value.empty() || name == Naming::none || value.starts_with(secret_mask)) return false;
  if (name == Naming::weak) return looks_random(value, bare ? shortest_bare : shortest);
  const std::string_view reference = value.substr(0, 2);  // $TOKEN, ${TOKEN} or $(command) of a shell
  if (reference[0] == '$' && any(reference, [](char c) { return is_upper(c) || c == '{' || c == '('; })) return false;
  return value != "***" && !is_one_of(value.substr(0, 8), " true false null none yes no on off set unset ");
}

bool is_bare(std::string_view name) {
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  return name.size() <= 5;
}

// Goes through a text once, word by word, and collects where secrets are.
class Finder {
 public:
  using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

  Finder(std::string_view text, bool first_only) : text_(text), first_only_(first_only) {}

  Spans find() {
    while (at_ < text_.size() && !(first_only_ && !spans_.empty())) {
      const char c = text_[at_];
      if (c == '\\') {  // an escape of JSON: \n, \"
        at_ += 2;
      } else if (c == '\x1b') {  // a colour of the terminal
        while (++at_ < text_.size() && !is_letter(text_[at_])) {
        }
        ++at_;
      } else if (c == ':' && peek(at_ + 1) == '/' && (peek(at_ + 2) == '/' || after_scheme())) {
        url();
      } else if (is_word(c)) {
        word();
      } else {
        ++at_;
      }
    }
    return std::move(spans_);
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  template <typename Which>
  std::size_t skip(std::size_t at, Which which) const {
    while (at < text_.size() && which(text_[at])) ++at;
    return at;
  }
  // Past quotes and the backslashes before them.
  std::size_t skip_quotes(std::size_t at) const {
    return skip(at, [](char c) { return c == '\\' || c == '"' || c == '\'' || c == '`'; });
  }

  void mask(std::size_t from, std::size_t to) {
    if (to > from && !text_.substr(from).starts_with(secret_mask)) spans_.emplace_back(from, to);
    at_ = std::max(at_, to);
  }

  // Whether "https" or the like is before: paths lose a slash of "https://".
  bool after_scheme() const {
    constexpr std::size_t longest = 16;
    std::size_t from = at_;
    while (from > 0 && at_ - from < longest && is_alnum(text_[from - 1])) --from;
    return is_one_of(text_.substr(from, at_ - from),
                     " amqp ftp git http https mongodb mysql postgres postgresql redis rediss s3 ");
  }

  // https://USER:PASSWORD@host: what is before the last @ of the authority.
  void url() {
    const std::size_t start = at_ + (peek(at_ + 2) == '/' ? 3 : 2);
    std::size_t end = start, sign = 0;
    for (; end < text_.size() && std::string_view("/?#\"'`<>\\").find(text_[end]) == std::string_view::npos &&
           static_cast<unsigned char>(text_[end]) > ' ';
         ++end)
      if (text_[end] == '@') sign = end;
    const bool login = text_.substr(0, at_).ends_with("ssh") &&
                       text_.substr(start, sign - std::min(sign, start)).find(':') == std::string_view::npos;
    at_ = start;
    if (sign > start && !login) mask(start, sign);
  }

  void word() {
    const std::size_t start = at_, end = skip(at_, [](char c) { return is_word(c); });
    const std::string_view name = text_.substr(start, end - start);
    at_ = end;
    constexpr std::size_t wandb = 40;
    if (is_digit(name.front()) && name.size() != wandb) return;  // most words of a record
    if (name.starts_with("-----")) return pem(start);
    if (const std::size_t to = shaped(start, end); to > 0) return mask(start, to);
    if (name.size() == 6 && lower_case(name) == "bearer") {
      const std::size_t value = skip(end, is_space);
      if (value > end && looks_random(text_.substr(value, skip(value, is_token) - value), 8))
        mask(value, value_end(value, '\0'));
      return;
    }
    const Naming says = naming(name);
    if (says != Naming::none) named(start, end, says);
  }

  // The end of what has the shape of a key and begins here; 0 if nothing has.
  std::size_t shaped(std::size_t start, std::size_t end) const {
    constexpr std::size_t shortest = 12;
    const std::string_view text = text_.substr(start, end - start);
    if (text.size() < shortest) return 0;
    for (const Shape& one : shapes) {
      if (!text.starts_with(one.start)) continue;
      const std::size_t to = skip(start + one.start.size(), one.rest);
      const std::string_view rest = text_.substr(start + one.start.size(), to - start - one.start.size());
      const bool parts = one.rest == Chars(is_token);  // of a JSON Web Token
      if (rest.size() < one.least || !(parts ? rest.find('.') != rest.npos : any(rest, is_digit))) continue;
      return std::max(to, end);
    }
    constexpr std::size_t wandb = 40, before = 32;
    if (text.size() != wandb || !all(text, is_hex)) return 0;
    // A commit has this shape as well.
    const std::string words = lower_case(text_.substr(start - std::min(start, before), std::min(start, before)));
    const bool key = words.find("key") != words.npos || words.find("wandb") != words.npos;
    return key && words.find("commit") == words.npos && words.find("\"key\"") == words.npos ? end : 0;
  }

  // A private key between its head and its foot, or up to where the text is cut.
  void pem(std::size_t start) {
    constexpr std::size_t longest = 64;
    const std::size_t found = text_.substr(start, longest).find("PRIVATE KEY");
    if (found == std::string_view::npos) return;
    const std::size_t name_end = start + found + 11, block = text_.substr(name_end).starts_with(" BLOCK") ? 6 : 0;
    const std::size_t body = skip(name_end + block, [](char c) { return c == '-'; });
    if (text_.substr(start).starts_with("-----BEGIN"))
      return mask(body, std::min(text_.find("-----END", body), text_.size()));
    at_ = body;
    std::size_t from = start;
    while (from > begun_ && (is_base64(text_[from - 1]) || text_[from - 1] == '\n' || text_[from - 1] == '\\')) --from;
    begun_ = body;
    constexpr std::size_t shortest = 16;
    while (!spans_.empty() && spans_.back().second > from) from = spans_.back().first, spans_.pop_back();
    if (start - from >= shortest) mask(from, start);
  }

  // The end of a value: the quote that opened it, else a space or what divides values.
  std::size_t value_end(std::size_t at, char quote, std::size_t most = std::string_view::npos) const {
    const std::size_t end = at + std::min(most, text_.size() - std::min(at, text_.size()));
    for (; at < end; ++at) {
      const char c = text_[at];
      if (c == '\n' || c == '\r' || (quote && (c == quote || (c == '\\' && peek(at + 1) == quote)))) break;
      if (!quote && (static_cast<unsigned char>(c) <= ' ' ||
                     std::string_view("\"'`,;&|<>)}]\\").find(c) != std::string_view::npos))
        break;
    }
    return at;
  }

  // NAME=V, NAME: V, "NAME": "V", --NAME V.
  void named(std::size_t start, std::size_t end, Naming says) {
    constexpr std::size_t judged = 256;  // bytes of a value, so that names within it do not take quadratic time
    const std::string_view name = text_.substr(start, end - start);
    const bool bare = is_bare(name), flag = name.starts_with("-");
    if (says == Naming::weak && !flag && start > 0 && text_[start - 1] == '/') return;  // in the key of a case
    const std::size_t quoted = skip_quotes(end);
    if (quoted > end && lower_case(name) == "key") return;  // the member "key" of records
    std::size_t at = skip(quoted, is_space);
    if (peek(at) == '=' || (peek(at) == ':' && peek(at + 1) != ':' && text_.substr(at, 3) != "://")) {
      const bool apart = at > quoted || peek(at) == ':';
      at = skip(at, [](char c) { return c == '=' || c == ':' || c == '>'; });
      if (apart) at = skip(at, is_space);
    } else if (!flag || quoted > end || at == end || peek(at) == '-') {
      return;
    }
    const std::size_t open = at;
    at = skip_quotes(at);
    const char quote = at > open ? text_[at - 1] : '\0';
    const std::size_t scheme = at + std::min<std::size_t>(skip(at, is_alnum) - at, 8), after = skip(scheme, is_space);
    if (after > scheme && is_one_of(text_.substr(at, scheme - at), " bearer basic token digest apikey ")) at = after;
    if (text_.substr(at).starts_with("-----BEGIN")) return;  // pem() takes it
    const std::string_view value = text_.substr(at, value_end(at, quote, judged) - at);
    if (flag && bare && !is_number(value) && !is_element_type(value)) says = Naming::strong;  // --token V
    if (counts(says, value, bare)) mask(at, value_end(at, quote));
  }

  std::string_view text_;
  bool first_only_;
  std::size_t at_ = 0;
  std::size_t begun_ = 0;  // the end of the last foot of a private key
  Spans spans_;
};

}  // namespace

std::string mask_secrets(std::string_view text) {
  std::string out;
  std::size_t done = 0;
  for (const auto& [from, to] : Finder(text, false).find()) {
    out += text.substr(done, from - done);
    out += secret_mask;
    done = to;
  }
  return out += text.substr(done);
}

bool holds_secret(std::string_view text) { return !Finder(text, true).find().empty(); }

bool is_secret(std::string_view name, std::string_view value) { return counts(naming(name), value, is_bare(name)); }

std::size_t count_masked(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(secret_mask); at != text.npos; at = text.find(secret_mask, at + secret_mask.size()))
    ++count;
  return count;
}

}  // namespace assay
