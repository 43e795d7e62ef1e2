#include "harness/fitness/accept/state.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/json/members.h"

#include <fmt/format.h>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t max_state_bytes = std::uintmax_t{16} << 20;

}  // namespace

State read_state(const fs::path& dir) {
  std::error_code none;
  if (!fs::is_regular_file(dir / state_file, none))
    throw UsageError(fmt::format("--resume {}: no acceptance there (it has no {})", dir.string(), state_file));
  try {
    auto state = read_value<State>(parse_untrusted(read_whole(dir / state_file, max_state_bytes)));
    if (state.id != state_form) throw Error(fmt::format("\"state\" is not \"{}\"", state_form));
    return state;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(fmt::format("--resume {}: {}: {}", dir.string(), state_file, error.what()));
  }
}

void write_state(const fs::path& dir, const State& state) {
  replace_file(dir / state_file, dump_document(json_of(state)));
}

}  // namespace assay::accept
