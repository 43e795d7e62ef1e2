// From records to an exit code.
#include "harness/run/results.h"

namespace assay {

ExitCode exit_code_of(const RunData& data, std::size_t planned) {
  ExitCode code = ExitCode::ok;
  const std::vector<Record> records = data.final_records();
  for (const Record& record : records) {
    if (record.status == Status::failed) code = worst(code, ExitCode::failed);
    if (record.status == Status::error) code = worst(code, ExitCode::broken);
  }
  return records.size() < planned ? worst(code, ExitCode::no_data) : code;
}

}  // namespace assay
