// How the form of a product that was measured did beside the others in their trial.
#pragma once

#include <string>

namespace assay {

struct Record;

namespace report {

// "the packed form was 1.12 times as fast in the trial", or "no other of the 3 forms tried was faster (the slowest:
// 88 % of its rate)"; empty if the record does not have the labels `tried_FORM` and `form`.
std::string tried_forms_text(const Record& record);

}  // namespace report
}  // namespace assay
