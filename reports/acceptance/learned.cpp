#include "reports/acceptance/learned.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/fitness/floors/words.h"
#include "harness/json/members.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

using namespace fitness;

namespace {

std::string sigma_text(const std::optional<double>& sigma) { return sigma ? rough_percent(*sigma) : "–"; }

std::string case_text(const LearnedFloor& floor) {
  return fmt::format("{} {}", one_line(floor.like->record->key, 400), one_line(floor.metric, 80));
}

Table floors_table(const LearnedFloors& learned) {
  Table table{"learned", "", {}, {}};
  table.columns = {{"case"},         right("median"), right("machines"),       right("runs"),
                   right("between"), right("within"), right("limit", "floor"), right("loss", "finds a loss of")};
  for (const LearnedFloor& each : learned.cases) {
    if (!each.limit) continue;
    const auto sigma = [](const std::optional<double>& value) {
      return value ? text_cell(sigma_text(value)) : no_cell();
    };
    table.rows.push_back({text_cell(case_text(each)), text_cell(format_quantity(each.median, each.unit)),
                          count_cell(each.machines), count_cell(each.runs), sigma(each.between), sigma(each.within),
                          text_cell(fmt::format("{} {}", each.better == Better::higher ? ">=" : "<=",
                                                format_quantity(*each.limit, each.unit))),
                          text_cell(rough_percent(*each.loss))});
  }
  return table;
}

std::string apart_text(const MachineApart& apart) {
  return fmt::format("{}: {} {} in {}", one_line(apart.machine, 80), rough_percent(std::abs(apart.difference)),
                     apart.difference < 0 ? "slower" : "faster", one_line(apart.key, 400));
}

Json case_json(const LearnedFloor& each) {
  const Record& like = *each.like->record;
  Json json = {{"key", like.key},
               {"device", like.device},
               {"ranks", like.world_ranks},
               {"metric", each.metric},
               {"unit", each.unit},
               {"better", assay::word_of(each.better)},
               {"median", each.median},
               {"machines", each.machines},
               {"runs", each.runs},
               {"between", json_of(each.between)},
               {"within", json_of(each.within)}};
  if (each.limit) {
    json["limit"] = *each.limit;
    json["loss_found"] = json_of(each.loss);
  } else {
    json["reason"] = each.reason;
  }
  return json;
}

}  // namespace

Document learned_document(const LearnedFloors& learned) {
  Document document;
  document.title = "Assay floors";
  if (!learned.machines.empty()) document.headline = basis_text(learned, learned.machines.size(), learned.runs);
  Section floors{"floors", "", {}};
  if (learned.floors() > 0) {
    floors.blocks.push_back(
        Text{fmt::format("false fails: at most {} of {}, {} for each floor", rough_percent(learned.options.false_fail),
                         learned.options.same_machine ? "this machine's runs" : "the runs of healthy machines",
                         rough_percent(learned.floor_rate))});
    floors.blocks.push_back(floors_table(learned));
    document.sections.push_back(std::move(floors));
  }
  List without{"without", {}}, apart{"apart", {}};
  for (const LearnedFloor& each : learned.cases)
    if (!each.limit) without.items.push_back(fmt::format("{}: {}", case_text(each), each.reason));
  for (const MachineApart& each : learned.apart) apart.items.push_back(apart_text(each));
  const auto add = [&](const char* title, List list) {
    const std::string id = list.id;
    if (!list.items.empty()) document.sections.push_back({id, title, {std::move(list)}});
  };
  add("No floor", std::move(without));
  add(learned.options.outliers == Outliers::leave_out ? "Apart from the others, and left out" : "Apart from the others",
      std::move(apart));
  add("Left out, or to know", {"notes", learned.notes});
  document.verdict = learned.nothing.empty()
                         ? fmt::format("floors: {} of {}", learned.floors(), plural(learned.cases.size(), "case"))
                         : "no floors: " + learned.nothing;
  document.tone = learned.nothing.empty() ? Tone::good : Tone::warn;
  return document;
}

Json learned_json(const LearnedFloors& learned) {
  Json json = {{"schema", 1}};
  json["false_fail"] = {{"file", learned.options.false_fail},
                        {"floor", learned.floor_rate > 0 ? Json(learned.floor_rate) : Json()},
                        {"cases", learned.tried}};
  json["same_machine"] = learned.options.same_machine;
  json["hardware"] = or_null(learned.hardware);
  json["measured"] = or_null(learned.measured);
  json["machines"] = learned.machines;
  json["runs"] = learned.runs;
  json["floors"] = Json::array();
  json["without"] = Json::array();
  for (const LearnedFloor& each : learned.cases) json[each.limit ? "floors" : "without"].push_back(case_json(each));
  json["outliers"] = assay::word_of(learned.options.outliers);
  json["apart"] = Json::array();
  for (const MachineApart& each : learned.apart)
    json["apart"].push_back({{"machine", each.machine}, {"key", each.key}, {"difference", each.difference}});
  json["notes"] = learned.notes;
  json["nothing"] = or_null(learned.nothing);
  return json;
}

}  // namespace assay::report
