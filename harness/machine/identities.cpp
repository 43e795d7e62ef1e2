#include "harness/machine/identities.h"

#include "harness/json/json.h"
#include "harness/machine/nvml.h"

namespace assay {

std::map<std::string, std::string> slots_by_address(const Root& root) {
  std::map<std::string, std::string> slots;
  for (const auto& name : root.list("sys/bus/pci/slots"))
    if (const auto address = root.text("sys/bus/pci/slots/" + name + "/address")) slots[*address] = name;
  return slots;
}

std::map<std::string, std::string> serials_of_gpus(const Root& root) {
  std::map<std::string, std::string> serials;
  if (!root.real()) {
    const auto text = root.text("nvml.json");
    if (!text) return serials;
    const Json document = parse_json(*text, (root.path() / "nvml.json").string());
    for (const Json& device : member(document, "/devices"))
      serials[text_member(device, "/pci")] = text_member(device, "/serial");
    return serials;
  }
  std::string why_not;
  if (const auto nvml = Nvml::load(why_not))
    for (const NvmlDevice& device : nvml->devices()) serials[device.pci()] = device.serial();
  return serials;
}

}  // namespace assay
