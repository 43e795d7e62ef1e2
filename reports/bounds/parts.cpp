#include "reports/bounds/parts.h"

#include "harness/core/configs.h"
#include "harness/json/json.h"
#include "harness/runs/filled_text.h"

namespace assay::report {

namespace {

constexpr int parts_schema = 1;

CorePeak read_core(const Cursor& at) {
  CorePeak core;
  if (!at.object()) return core;
  at.only({"isa", "dtype", "max", "source"});
  core.isa = filled_text(at.need("isa"));
  core.dtype = filled_text(at.need("dtype"));
  if (const auto max = at.need("max")) core.max = max->number(1, 1e9).value_or(0);
  core.source = filled_text(at.need("source"));
  return core;
}

UsualShare read_usual(const Cursor& at) {
  static const std::vector<std::string> names = fitness::selection_members({"share"});
  UsualShare usual;
  if (!at.object()) return usual;
  at.only(names);
  fitness::read_selection(at, usual);
  const auto share = at.need("share");
  const auto ends = share ? share->elements() : std::vector<Cursor>{};
  if (share && ends.size() != 2) share->error("must be the lowest and the highest");
  if (ends.size() != 2) return usual;
  usual.share = {fitness::read_quantity(ends[0], "1", 0, 1).value_or(0),
                 fitness::read_quantity(ends[1], "1", 0, 1).value_or(0)};
  if (usual.share.high < usual.share.low) share->error("must begin with the lower end");
  return usual;
}

}  // namespace

PartsData load_parts(const std::filesystem::path& file) {
  return read_strictly(file, parts_schema, {"schema", "description", "flop_per_cycle", "usual"},
                       [](const Cursor& root) {
                         root.text_of("description");
                         PartsData data;
                         if (const auto list = root.need("flop_per_cycle"))
                           for (const Cursor& each : list->elements()) data.cores.push_back(read_core(each));
                         if (const auto list = root.need("usual"))
                           for (const Cursor& each : list->elements()) data.usual.push_back(read_usual(each));
                         return data;
                       });
}

const PartsData& shipped_parts() {
  static const PartsData data = load_parts(find_config("normal", "file of parts", "parts"));
  return data;
}

}  // namespace assay::report
