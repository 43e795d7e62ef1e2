// Reads the records of builds that said in words alone who is to blame. No other code reads reasons and details.
#include "harness/record/failure.h"
#include "harness/record/flags.h"
#include "harness/record/record.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace assay {

namespace {

using Names = std::vector<std::string>;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Those of `hosts` that a text names, as whole words.
Names hosts_named(std::string_view text, const Names& hosts) {
  const auto of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  Names named;
  for (const std::string& host : hosts)
    for (std::size_t at = text.find(host); at != text.npos; at = text.find(host, at + 1)) {
      const std::size_t end = at + host.size();
      // A full stop ends a sentence, or belongs to a longer name.
      const bool starts = at == 0 || !of_name(text[at - 1]);
      const bool ends = end == text.size() || !of_name(text[end]) ||
                        (text[end] == '.' && (end + 1 == text.size() || !of_name(text[end + 1])));
      if (!starts || !ends) continue;
      named.push_back(host);
      break;
    }
  return named;
}

// The number after `word` at the start of a text: "rank 3: ...".
std::optional<int> number_after(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + word.size(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<int> rank_on(const Record& record, const std::string& host) {
  for (const RankResult& rank : record.ranks)
    if (rank.host == host) return rank.rank;
  return std::nullopt;
}

// "rank 3: from h1: element 5 is 7, not 6"
void add_culprits(const Record& record, const std::string& line, const Names& hosts, std::vector<Culprit>& to) {
  const auto rank = number_after(line, "rank ");
  if (!rank) return;
  const std::size_t before = to.size();
  for (const std::string& sender : hosts_named(line.substr(line.find(':') + 1), hosts))
    if (contains(line, "from " + sender + ":")) to.push_back({*rank, rank_on(record, sender)});
  if (to.size() == before) to.push_back({*rank});
}

FailureKind kind_of(const Record& record) {
  const std::string& reason = record.reason;
  if (record.status == Status::failed) return FailureKind::wrong_result;
  if (flag::has(record.flags, flag::timed_out) || reason.starts_with("timeout: ")) return FailureKind::timeout;
  if (contains(reason, "out of memory")) return FailureKind::out_of_memory;
  for (const char* word : {"killed by ", "ended with code ", "its worker ended"})
    if (contains(reason, word)) return FailureKind::crashed;
  return FailureKind::exception;
}

}  // namespace

void set_failure_from_text(Record& record) {
  for (const std::string& text : record.flags)
    if (const auto rank = number_after(text, flag::slow_rank); rank && !record.slow_rank) record.slow_rank = {*rank};
  if (record.failure || (record.status != Status::failed && record.status != Status::error)) return;
  const Names hosts = record.identity().hosts;
  for (Check& check : record.checks)
    for (const std::string& line : check.passed || !check.culprits.empty() ? Names() : Names(check.detail))
      add_culprits(record, line, hosts, check.culprits);
  Failure failure{.kind = kind_of(record)};
  if (failure.kind == FailureKind::wrong_result) {
    failure.rank = only_culprit(record.checks);
    if (failure.rank) failure.host = record.host_of(*failure.rank);
  } else if (const Names named = hosts_named(record.reason, hosts); !named.empty()) {
    if (failure.kind != FailureKind::timeout) failure.kind = FailureKind::lost_host;
    failure.host = named.front();
    if (named.size() > 1) failure.hosts = named;
  }
  record.failure = std::move(failure);
}

}  // namespace assay
