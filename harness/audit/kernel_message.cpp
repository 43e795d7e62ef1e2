// Which messages of the kernel are evidence of which problem, and of which device they speak.
#include "harness/audit/kernel_log.h"
#include "harness/audit/xids.h"
#include "harness/core/text.h"

#include <algorithm>
#include <cctype>

namespace assay::audit {

namespace {

// How a message names its device.
enum class Names {
  none,
  last_pci,      // the last PCI address in it
  memory,        // "MC0"
  before_colon,  // the word before the first ": "
  after_needle,  // the word after the second needle
  in_brackets,   // between the first ( and )
  nvme,          // the first word "nvme0"
};

struct Pattern {
  const char* kind;
  const char* problem;
  const char* first;  // both must be in the message
  const char* second;
  Names names;
};

// The first that matches counts. Messages as in the sources of Linux and of the drivers named in them.
constexpr Pattern patterns[] = {
    {"gpu", "gpu-init-failed", "NVRM:", "RmInitAdapter failed", Names::last_pci},
    {"gpu", "gpu-lost", "NVRM:", "fallen off the bus", Names::last_pci},
    {"aer", "aer-fatal", "PCIe Bus Error", "(Fatal)", Names::last_pci},
    {"aer", "aer-fatal", "AER:", "(Fatal)", Names::last_pci},
    {"aer", "aer-fatal", "AER:", "device recovery failed", Names::last_pci},
    {"aer", "aer-nonfatal", "PCIe Bus Error", "(Non-Fatal)", Names::last_pci},
    {"aer", "aer-corrected", "PCIe Bus Error", "severity=Correct", Names::last_pci},
    {"edac", "memory-uncorrected", "EDAC MC", " UE ", Names::memory},
    {"edac", "memory-corrected", "EDAC MC", " CE ", Names::memory},
    {"mce", "memory-uncorrected", "Memory failure: 0x", "", Names::none},
    {"mce", "hardware-error", "Machine Check Exception", "", Names::none},
    {"mce", "hardware-error", "[Hardware Error]", "event severity: fatal", Names::none},
    {"mce", "hardware-error", "[Hardware Error]", "event severity: recoverable", Names::none},
    {"mce", "hardware-error", "[Hardware Error]", "Uncorrected", Names::none},
    {"mce", "machine-check", "[Hardware Error]", "event severity: corrected", Names::none},
    {"mce", "machine-check", "[Hardware Error]", "Machine check events logged", Names::none},
    {"mce", "machine-check", "[Hardware Error]", "Corrected error", Names::none},
    {"thermal", "thermal-events", "temperature above threshold", "", Names::none},
    {"thermal", "thermal-events", "critical temperature", "", Names::none},
    {"link", "nic-cable", "Port module event", "Cable", Names::last_pci},
    {"link", "nic-health", "mlx5_core", "health compromised", Names::last_pci},
    {"link", "nic-timeout", "NETDEV WATCHDOG", "NETDEV WATCHDOG: ", Names::after_needle},
    {"link", "link-events", "link status definitely down", "interface ", Names::after_needle},
    {"link", "link-events", "NIC Link is Down", "", Names::before_colon},
    {"link", "link-events", "mlx5_core", "Link down", Names::before_colon},
    {"link", "link-events", ": Link is down", "", Names::before_colon},
    {"link", "link-events", ": Link is Down", "", Names::before_colon},
    {"oom", "oom-cgroup", "Memory cgroup out of memory: Killed process", "", Names::none},
    {"oom", "oom-kill", "Out of memory: Killed process", "", Names::none},
    {"hung-task", "hung-task", "INFO: task ", "blocked for more than", Names::none},
    {"hung-task", "cpu-lockup", "soft lockup", "", Names::none},
    {"hung-task", "cpu-lockup", "hard LOCKUP", "", Names::none},
    {"hung-task", "cpu-lockup", "rcu", "detected stall", Names::none},
    {"io", "disk-lost", "nvme", "emoving after probe failure", Names::nvme},
    {"io", "disk-lost", "nvme", "Device not ready; aborting", Names::nvme},
    {"io", "disk-errors", "nvme", "timeout, aborting", Names::nvme},
    {"io", "disk-errors", "nvme", "controller is down", Names::nvme},
    {"io", "disk-errors", "I/O error", ", dev ", Names::after_needle},
    {"io", "disk-errors", "critical medium error", ", dev ", Names::after_needle},
    {"io", "disk-errors", "Buffer I/O error", "on dev ", Names::after_needle},
    {"read-only", "filesystem-errors", "Remounting filesystem read-only", "", Names::in_brackets},
    {"read-only", "filesystem-errors", "EXT4-fs error", "", Names::in_brackets},
    {"read-only", "filesystem-errors", "XFS (", "orruption", Names::in_brackets},
    {"read-only", "filesystem-errors", "XFS (", "hutting down", Names::in_brackets},
    {"read-only", "filesystem-errors", "BTRFS", "forced readonly", Names::in_brackets},
    {"nfs", "mount-stalled", "not responding", "nfs: server ", Names::after_needle},
    {"nfs", "mount-stalled", "Lustre", " was lost", Names::none},
    {"oops", "kernel-oops", "BUG: unable to handle", "", Names::none},
    {"oops", "kernel-oops", "kernel BUG at", "", Names::none},
    {"oops", "kernel-oops", "Oops: ", "", Names::none},
    {"oops", "kernel-oops", "Kernel panic", "", Names::none},
    {"oops", "kernel-oops", "general protection fault", "", Names::none},
};

bool hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

// Length of an address DDDD:BB:DD or DDDD:BB:DD.F at the start of the text; 0 if there is none.
std::size_t address_length(std::string_view text) {
  constexpr std::string_view shape = "xxxx:xx:xx";
  if (text.size() < shape.size()) return 0;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'x' ? !hex(text[i]) : text[i] != shape[i]) return 0;
  return text.size() >= 12 && text[10] == '.' && text[11] >= '0' && text[11] <= '7' ? 12 : 10;
}

// As the kernel's folders write it: lower case, with a function.
std::string address(std::string_view text) {
  std::string name(text.substr(0, address_length(text)));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.size() == 10) name += ".0";
  return name;
}

std::string last_address(std::string_view text) {
  for (std::size_t i = text.size(); i-- > 0;)
    if (address_length(text.substr(i)) > 0 && (i == 0 || !hex(text[i - 1]))) return address(text.substr(i));
  return {};
}

// Up to a blank or a mark that no device's name has.
std::string word_at(std::string_view text) {
  const auto end = text.find_first_of(" \t,;()");
  auto word = text.substr(0, end);
  while (!word.empty() && (word.back() == ':' || word.back() == '.')) word.remove_suffix(1);
  return one_line(word, 64);
}

std::string device_of(const Pattern& pattern, std::string_view text) {
  switch (pattern.names) {
    case Names::none: break;
    case Names::last_pci: return last_address(text);
    case Names::memory: {
      const auto at = text.find("MC");
      const auto end = text.find_first_not_of("0123456789", at + 2);
      return "mc" + std::string(text.substr(at + 2, end == text.npos ? text.npos : end - at - 2));
    }
    case Names::before_colon: {
      const auto before = text.substr(0, text.find(": "));
      const auto blank = before.find_last_of(' ');
      return word_at(blank == before.npos ? before : before.substr(blank + 1));
    }
    case Names::after_needle: {
      const std::string_view needle = pattern.second;
      return word_at(text.substr(text.find(needle) + needle.size()));
    }
    case Names::in_brackets: {
      const auto open = text.find('('), close = text.find(')', open == text.npos ? 0 : open);
      if (open == text.npos || close == text.npos) return {};
      auto inside = text.substr(open + 1, close - open - 1);
      if (inside.starts_with("device ")) inside.remove_prefix(7);
      return word_at(inside);
    }
    case Names::nvme: {
      for (const std::string& word : words(text))
        if (word.starts_with("nvme") && word.size() > 4 && std::isdigit(static_cast<unsigned char>(word[4])))
          return word_at(word);
      return {};
    }
  }
  return {};
}

// "NVRM: Xid (PCI:0000:1b:00): 79, pid=..." and "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32".
std::optional<KernelEvent> parse_xid(std::string_view text) {
  const bool is_switch = text.starts_with("nvidia-nvswitch");
  if (!is_switch && !text.starts_with("NVRM:")) return std::nullopt;
  const std::string_view start = is_switch ? "SXid (" : "Xid (";
  const auto open = text.find(start);
  const auto close = open == text.npos ? open : text.find("): ", open);
  if (close == text.npos) return std::nullopt;
  const auto number = to_integer(text.substr(close + 3, 12));
  if (!number || *number < 0) return std::nullopt;
  auto place = text.substr(open + start.size(), close - open - start.size());
  if (place.starts_with("PCI:")) place.remove_prefix(4);
  KernelEvent event;
  event.kind = is_switch ? "sxid" : "xid";
  event.device = address(place);
  event.code = *number;
  if (is_switch) {
    event.problem = text.find(", Fatal") != text.npos ? "sxid-fatal" : "sxid";
    return event;
  }
  const Xid* const xid = find_xid(*number);
  event.problem = xid == nullptr                     ? "xid-unknown"
                  : xid->severity == Severity::fault ? "xid-fatal"
                  : xid->severity == Severity::info  ? "xid-application"
                                                     : "xid-hardware";
  // "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)": after a reset.
  if (*number == 154 && text.find("to 0x0 (None)") != text.npos) event.problem = "";
  return event;
}

}  // namespace

std::optional<KernelEvent> parse_kernel_message(std::string_view message) {
  auto event = parse_xid(message);
  for (const Pattern& pattern : patterns) {
    if (event) break;
    if (message.find(pattern.first) == message.npos || message.find(pattern.second) == message.npos) continue;
    event.emplace();
    event->kind = pattern.kind;
    event->problem = pattern.problem;
    event->device = device_of(pattern, message);
  }
  if (event) event->text = one_line(message, 400);
  return event;
}

}  // namespace assay::audit
