// Measures the cost of spans, and opens sample spans. `span_program cost` prints nanoseconds per span without sinks
// (minus an empty loop) and with a timeline; `span_program spans` opens some on two threads, one of them left by an
// exception.
#include "harness/trace/trace.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace {

using assay::trace::Category;
using assay::trace::Span;

template <typename F>
double nanoseconds_per_turn(int turns, const F& body) {
  double best = 1e9;
  for (int attempt = 0; attempt < 7; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < turns; ++i) {
      asm volatile("" : : "r"(i) : "memory");
      body(i);
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / turns);
  }
  return best;
}

void cost() {
  constexpr int turns = 2'000'000, kept = 100'000;
  const auto empty = [](int) {};
  const auto span = [](int i) { const Span one(Category::sample, "sample", i); };
  { const Span first(Category::run, "checks whether a tool is attached"); }
  const double nothing = nanoseconds_per_turn(turns, empty);
  std::printf("off: %.2f ns per span (empty loop %.2f ns)\n", nanoseconds_per_turn(turns, span) - nothing, nothing);
  assay::trace::start_timeline();
  double best = 1e9;
  for (int attempt = 0; attempt < 5; ++attempt) {
    best = std::min(best, nanoseconds_per_turn(kept, span));
    assay::trace::drain_timeline();
  }
  std::printf("timeline: %.0f ns per span\n", best);
}

void spans() {
  const Span run(Category::run, "run");
  std::thread worker([] { const Span decode(Category::data, "decode", 3); });
  worker.join();
  try {
    const Span fails(Category::case_, "case that fails", 7);
    const Span phase(Category::phase, "setup");
    throw std::runtime_error("no memory");
  } catch (const std::runtime_error&) {
  }
  for (int i = 0; i < 2; ++i) {
    const Span holds(Category::case_, "case that holds", 8);
    const Span phase(Category::phase, "measure");
    const Span layer(Category::layer, "layer", -5'000'000'000);
    const Span reduce(Category::communication, "all_reduce", 64);
    const Span sample(Category::sample, "sample", i);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "cost")
    cost();
  else if (what == "spans")
    spans();
  else
    return 2;
}
