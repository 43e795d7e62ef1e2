#include "cli/list_kinds.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/fitness/gate/catalogue.h"
#include "harness/json/configs.h"
#include "harness/json/json.h"
#include "harness/json/members.h"
#include "workloads/estimate/models.h"

#include <fmt/format.h>

namespace assay::cli {

Json models_json(bool requested) {
  Json list = Json::array();
  for (const ConfigFile& file : config_files("models")) {
    try {
      list.push_back(estimate::model_json(file));
    } catch (const UsageError& error) {
      if (requested) throw;
      list.push_back({{"name", file.name}, {"path", file.path.string()}, {"reason", error.what()}});
    }
  }
  return list;
}

std::string models_text(bool requested) {
  std::string text = "models\n";
  for (const Json& model : models_json(requested)) text += estimate::model_text(model);
  return text + "  memory of a step: assay estimate MODEL\n";
}

Json codes_json(bool requested) {
  try {
    return gate::load_catalogue(configs_dir() / "gate.json").codes_json();
  } catch (const UsageError& error) {
    if (requested) throw;
    return Json::array({{{"reason", error.what()}}});
  }
}

std::string codes_text(bool requested) {
  std::string text = "codes\n";
  for (const Json& code : codes_json(requested)) {
    const std::string reason = text_member(code, "/reason");
    text += reason.empty() ? fmt::format("  {:<15} {:<24} {}\n", text_member(code, "/code"), text_member(code, "/id"),
                                         text_member(code, "/meaning"))
                           : fmt::format("  {}\n", one_line(reason, 400));
  }
  return text;
}

}  // namespace assay::cli
