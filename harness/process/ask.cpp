#include "harness/process/ask.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/plain_text.h"
#include "harness/process/run.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace assay {

namespace {

constexpr double death_seconds = 0.1;
constexpr std::size_t max_answer_bytes = std::size_t{1} << 30;

// Before the bytes of an answer: an answer counts if it is whole, whatever happens to the child afterwards.
struct Header {
  std::uint64_t bytes = 0;
  std::uint64_t threw = 0;
};

// Whether the function returned.
bool write_answer(const std::function<std::string()>& function, int output) {
  Header header;
  std::string text;
  try {
    text = function();
  } catch (const std::exception& error) {
    header.threw = 1;
    text = reason_of(error);
  }
  header.bytes = text.size();
  write_all(output, {reinterpret_cast<const char*>(&header), sizeof header}, "the answer");
  write_all(output, text, "the answer");
  return header.threw == 0;
}

ChildAnswer answer_of(FinishedProcess&& done, double seconds) {
  ChildAnswer answer;
  Header header;
  if (done.output.size() >= sizeof header) std::memcpy(&header, done.output.data(), sizeof header);
  if (done.output.size() >= sizeof header && done.output.size() - sizeof header == header.bytes) {
    answer.threw = header.threw != 0;
    done.output.erase(0, sizeof header);
    if (answer.threw)
      answer.problem = std::move(done.output);
    else
      answer.text = std::move(done.output);
    return answer;
  }
  answer.late = done.stopped == Stopped::late;
  answer.signal = done.signal;
  answer.problem = answer.late            ? fmt::format("no answer within {:g} s", seconds)
                   : !done.whole          ? fmt::format("an answer of more than {} MiB", max_answer_bytes >> 20)
                   : done.problem.empty() ? "ended without an answer"
                                          : done.problem;
  return answer;
}

}  // namespace

ChildAnswer ask_child(const std::function<std::string()>& function, double seconds, ExitHandlers handlers) {
  return std::move(ask_children({function}, seconds, handlers).front());
}

std::vector<ChildAnswer> ask_children(const std::vector<std::function<std::string()>>& functions, double seconds,
                                      ExitHandlers handlers) {
  std::vector<ProcessRun> runs;
  for (const auto& function : functions) {
    ProcessRun& run = runs.emplace_back();
    run.limit_seconds = seconds;
    run.death_seconds = death_seconds;
    run.max_output = max_answer_bytes;
    run.body = [&function, handlers](int output) {
      if (write_answer(function, output) && handlers == ExitHandlers::run) std::exit(0);
    };
  }
  std::vector<ChildAnswer> answers;
  try {
    for (FinishedProcess& done : run_processes(runs)) answers.push_back(answer_of(std::move(done), seconds));
  } catch (const Error& error) {
    answers.assign(functions.size(), {.text = {}, .problem = error.what()});
  }
  return answers;
}

}  // namespace assay
