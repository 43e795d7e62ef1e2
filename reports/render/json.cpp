// A Document as JSON: tables become arrays of objects, numbers stay in base units.
#include "harness/json/json.h"
#include "reports/render/escape.h"
#include "reports/render/render.h"

namespace assay::report {

namespace {

Json table_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const Cell& cell = row[i];
      object[table.columns[i].id] = cell.data.is_null() && !cell.text.empty() ? Json(printable(cell.text)) : cell.data;
    }
    rows.push_back(std::move(object));
  }
  return {{"id", table.id}, {"title", table.title}, {"rows", std::move(rows)}};
}

Json axis_json(const Axis& axis) {
  Json json = {{"title", printable(axis.title)}, {"unit", printable(axis.unit)}};
  if (!axis.categories.empty()) {
    json["categories"] = Json::array();
    for (const std::string& category : axis.categories) json["categories"].push_back(printable(category));
  }
  return json;
}

Json figure_json(const Figure& figure) {
  Json curves = Json::array();
  for (const Curve& curve : figure.curves) {
    Json points = Json::array();
    for (const Point& point : curve.points) {
      Json json = {{"x", point.x}, {"y", point.y}};
      if (point.range) json["range"] = {point.range->low, point.range->high};
      if (!point.label.empty()) json["label"] = printable(point.label);
      points.push_back(std::move(json));
    }
    curves.push_back({{"name", printable(curve.name)}, {"reference", curve.reference}, {"points", std::move(points)}});
  }
  return {{"id", figure.id},
          {"title", printable(figure.title)},
          {"x", axis_json(figure.x)},
          {"y", axis_json(figure.y)},
          {"curves", std::move(curves)}};
}

std::string_view state_name(Tone tone) { return name_of(tone, {"unknown", "good", "warn", "bad", "unknown"}); }

// The worst of all: what is unknown is worse than good.
std::string_view worst_state(const std::vector<Answer>& answers) {
  for (const Tone tone : {Tone::bad, Tone::warn, Tone::plain})
    for (const Answer& answer : answers)
      if (state_name(answer.tone) == state_name(tone)) return state_name(tone);
  return state_name(Tone::good);
}

Json answers_json(const std::vector<Answer>& answers) {
  Json json = Json::object();
  for (const Answer& answer : answers) {
    Json evidence = Json::array();
    for (const std::string& line : answer.evidence) evidence.push_back(printable(line));
    json[answer.id] = {
        {"state", state_name(answer.tone)}, {"text", printable(answer.text)}, {"evidence", std::move(evidence)}};
  }
  json["state"] = worst_state(answers);
  return json;
}

}  // namespace

std::string render_json(const Document& document) {
  Json sections = Json::array();
  for (const Section& section : document.sections) {
    Json texts = Json::array(), tables = Json::array(), lists = Json::array(), figures = Json::array();
    for (const Block& block : section.blocks) {
      if (const auto* text = std::get_if<Text>(&block)) texts.push_back(printable(text->text));
      if (const auto* table = std::get_if<Table>(&block)) tables.push_back(table_json(*table));
      if (const auto* figure = std::get_if<Figure>(&block)) figures.push_back(figure_json(*figure));
      if (const auto* list = std::get_if<List>(&block)) {
        Json items = Json::array();
        for (const std::string& item : list->items) items.push_back(printable(item));
        lists.push_back({{"id", list->id}, {"items", std::move(items)}});
      }
    }
    sections.push_back({{"id", section.id},
                        {"title", printable(section.title)},
                        {"texts", std::move(texts)},
                        {"tables", std::move(tables)},
                        {"lists", std::move(lists)},
                        {"figures", std::move(figures)}});
  }
  Json json = {{"schema", 1},
               {"title", printable(document.title)},
               {"headline", printable(document.headline)},
               {"verdict", printable(document.verdict)},
               {"sections", std::move(sections)}};
  json.update(document.members);
  if (!document.answers.empty()) json["answers"] = answers_json(document.answers);
  return dump_document(json);
}

}  // namespace assay::report
