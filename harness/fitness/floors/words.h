// Floors and judgements in words, for the document, the JSON and the test suite.
#pragma once

#include "harness/fitness/floors/check.h"

#include <string>

namespace assay::fitness {

// "device cuda, 8 ranks, cache=cold": what a floor asks for besides its key; may be empty.
std::string filters_text(const Floor& floor);
// "gemm/dtype=bf16/* throughput >= 700 TFLOP/s", with its filters in brackets.
std::string floor_title(const Floor& floor);
// Its members as in a floors file; the limit in base units.
Json floor_json(const Floor& floor);
// "812 TFLOP/s >= 700 TFLOP/s [789, 830]": the sign is what was found.
std::string comparison_text(const Floor& floor, const Judgement& judgement);
// "0.0083 %", "12 %", "270 %": a fraction with two digits.
std::string rough_percent(double fraction);
// "run-a/records.jsonl line 7 /metrics/0/value".
std::string place_text(const Judgement& judgement);

}  // namespace assay::fitness
