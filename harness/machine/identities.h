// What tells cards of one kind apart: the slot and the serial number.
#pragma once

#include "harness/machine/root.h"

#include <map>
#include <string>

namespace assay {

// The chassis's names of slots, by the address of the card in it without its function: "0000:1b:00".
std::map<std::string, std::string> slots_by_address(const Root& root);

// Serial numbers of GPUs by PCI address. On a folder in place of the machine, nvml.json stands for the driver.
std::map<std::string, std::string> serials_of_gpus(const Root& root);

}  // namespace assay
