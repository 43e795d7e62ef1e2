// Which messages of the kernel are evidence of which problem, and of which device they speak.
#include "harness/audit/areas.h"
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

// The first that matches counts. Words without capitals match in any case. Messages as in the sources of Linux and of
// the drivers named in them.
constexpr Pattern patterns[] = {
    {"gpu", "gpu-init-failed", "NVRM:", "RmInitAdapter failed", Names::last_pci},
    {"gpu", "gpu-init-failed", "NVRM:", "rm_init_adapter failed", Names::last_pci},
    {"gpu", "gpu-init-failed", "NVRM:", "probe routine failed", Names::last_pci},
    {"gpu", "gpu-init-failed", "NVRM:", "region assigned to your nvidia device is invalid", Names::last_pci},
    {"gpu", "gpu-lost", "NVRM:", "fallen off the bus", Names::last_pci},
    {"gpu", "peermem-context", "detected invalid context, skipping further processing", "", Names::none},
    {"nccl", "nccl-segfault", "segfault at", "in libnccl.so", Names::none},
    {"aer", "aer-fatal", "PCIe Bus Error", "(Fatal)", Names::last_pci},
    {"aer", "aer-fatal", "AER:", "(Fatal)", Names::last_pci},
    {"aer", "aer-fatal", "AER:", "device recovery failed", Names::last_pci},
    {"aer", "aer-fatal", "DPC: containment event", "", Names::last_pci},
    {"slot", "slot-power", "pciehp", "power fault", Names::last_pci},
    {"slot", "slot-down", "pciehp", "link down", Names::last_pci},
    {"slot", "slot-down", "pciehp", "card not present", Names::last_pci},
    {"aer", "aer-nonfatal", "PCIe Bus Error", "(Non-Fatal)", Names::last_pci},
    {"aer", "aer-corrected", "PCIe Bus Error", "severity=Correct", Names::last_pci},
    {"edac", "memory-uncorrected", "EDAC MC", " UE ", Names::memory},
    {"edac", "memory-corrected", "EDAC MC", " CE ", Names::memory},
    {"mce", "memory-uncorrected", "Memory failure: 0x", "", Names::none},
    {"mce", "memory-uncorrected", "ncorrected hardware memory error", "", Names::none},
    {"mce", "hardware-error", "SError Interrupt", "", Names::none},
    {"mce", "hardware-error", "Machine Check Exception", "", Names::none},
    {"mce", "hardware-error", "[Hardware Error]", "event severity: fatal", Names::none},
    {"mce", "hardware-error", "[Hardware Error]", "event severity: recoverable", Names::none},
    {"mce", "hardware-error", "[Hardware Error]", "Uncorrected", Names::none},
    {"mce", "machine-check", "[Hardware Error]", "event severity: corrected", Names::none},
    {"mce", "machine-check", "[Hardware Error]", "Machine check events logged", Names::none},
    {"mce", "machine-check", "[Hardware Error]", "Corrected error", Names::none},
    {"thermal", "thermal-events", "temperature above threshold", "", Names::none},
    {"thermal", "thermal-events", "critical temperature", "", Names::none},
    {"thermal", "thermal-events", "mlx5_core", "high temperature, severity", Names::last_pci},
    {"link", "nic-cable", "Port module event[error]", "", Names::last_pci},
    {"link", "nic-power", "insufficient power on the pcie slot", "", Names::last_pci},
    {"link", "nic-health", "mlx5_core", "health compromised", Names::last_pci},
    {"link", "nic-health", "mlx5_core", "health issue observed", Names::last_pci},
    {"link", "nic-health", "mlx5_core", "will cause a leak of a command resource", Names::last_pci},
    {"link", "nic-command", "mlx5_cmd_out_err", "failed", Names::last_pci},
    {"link", "nic-timeout", "NETDEV WATCHDOG", "NETDEV WATCHDOG: ", Names::after_needle},
    {"link", "link-events", "link status definitely down", "interface ", Names::after_needle},
    {"link", "link-events", "link status definitely down", "", Names::in_brackets},
    {"link", "link-events", "nic link is down", "", Names::before_colon},
    {"link", "link-events", "mlx", "link down", Names::before_colon},
    {"link", "link-events", "mlx", "linkdown", Names::before_colon},
    {"link", "link-events", "hfi1", "logical state changed to port_down", Names::before_colon},
    {"link", "link-events", "hfi1", "link down", Names::before_colon},
    {"link", "link-events", "infiniband", "link down", Names::before_colon},
    {"link", "link-events", ": link is down", "", Names::before_colon},
    {"oom", "oom-cgroup", "Memory cgroup out of memory: Kill", "", Names::none},
    {"oom", "oom-kill", "Out of memory: Kill", "", Names::none},
    {"hung-task", "hung-task", "INFO: task ", "blocked for more than", Names::none},
    {"hung-task", "cpu-lockup", "soft lockup", "", Names::none},
    {"hung-task", "cpu-lockup", "hard LOCKUP", "", Names::none},
    {"hung-task", "cpu-lockup", "rcu", "detected stall", Names::none},
    {"io", "disk-lost", "nvme", "emoving after probe failure", Names::nvme},
    {"io", "disk-lost", "nvme", "Device not ready; aborting", Names::nvme},
    {"io", "disk-lost", "nvme", "disabling device after reset failure", Names::nvme},
    {"io", "disk-lost", "nvme", "no available path - failing", Names::nvme},
    {"io", "disk-lost", "md/raid", "Disk failure on ", Names::after_needle},
    {"io", "disk-lost", "md/raid", "cannot continue operation", Names::before_colon},
    {"io", "disk-lost", "md: kicking non-fresh ", "md: kicking non-fresh ", Names::after_needle},
    {"io", "disk-lost", "rejecting I/O to offline device", "", Names::before_colon},
    {"io", "disk-lost", "Device offlined", "", Names::before_colon},
    {"io", "disk-lost", "ata", ": disable device", Names::before_colon},
    {"io", "raid-degraded", "VD ", "is now DEGRADED", Names::last_pci},
    {"io", "disk-errors", "nvme", "no usable path - requeuing", Names::nvme},
    {"io", "disk-errors", "nvme", "timeout, aborting", Names::nvme},
    {"io", "disk-errors", "nvme", "timeout, reset controller", Names::nvme},
    {"io", "disk-errors", "nvme", "timeout, disable controller", Names::nvme},
    {"io", "disk-errors", "nvme", "timeout, completion polled", Names::nvme},
    {"io", "disk-errors", "nvme", "starting error recovery", Names::nvme},
    {"io", "disk-errors", "nvme", "failed reconnect attempt", Names::nvme},
    {"io", "disk-errors", "device-mapper: multipath:", "Failing path ", Names::after_needle},
    {"io", "disk-errors", "md/raid", "read error not correctable", Names::before_colon},
    {"io", "disk-errors", "md: super_written gets error", "", Names::none},
    {"io", "disk-errors", "attempt to access beyond end of device", "", Names::none},
    {"io", "disk-errors", "nvme", "controller is down", Names::nvme},
    {"io", "disk-errors", "I/O error", ", dev ", Names::after_needle},
    {"io", "disk-errors", "critical medium error", ", dev ", Names::after_needle},
    {"io", "disk-errors", "Buffer I/O error", "on dev ", Names::after_needle},
    {"read-only", "filesystem-errors", "Remounting filesystem read-only", "", Names::in_brackets},
    {"read-only", "filesystem-errors", "I/O error while writing superblock", "", Names::in_brackets},
    {"read-only", "filesystem-errors", "Aborting journal on device ", "Aborting journal on device ",
     Names::after_needle},
    {"read-only", "filesystem-errors", "EXT4-fs error", "", Names::in_brackets},
    {"read-only", "filesystem-errors", "XFS (", "orruption", Names::in_brackets},
    {"read-only", "filesystem-errors", "XFS (", "hutting down", Names::in_brackets},
    {"read-only", "filesystem-errors", "XFS (", "metadata I/O error", Names::in_brackets},
    {"read-only", "filesystem-errors", "XFS (", "log I/O error", Names::in_brackets},
    {"read-only", "filesystem-errors", "BTRFS", "forced readonly", Names::in_brackets},
    {"files", "file-limit", "VFS: file-max limit", "", Names::none},
    {"clock", "clocksource", "Marking clocksource", "as unstable", Names::none},
    {"nfs", "mount-stalled", "not responding", "nfs: server ", Names::after_needle},
    {"nfs", "mount-stalled", "nfs", "lock reclaim failed", Names::none},
    {"nfs", "mount-stalled", "Lustre", " was lost", Names::none},
    {"oops", "kernel-oops", "BUG: unable to handle", "", Names::none},
    {"oops", "kernel-oops", "BUG: kernel NULL pointer dereference", "", Names::none},
    {"oops", "kernel-oops", "Unable to handle kernel", "", Names::none},
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

// Up to a blank or a mark that no device's name has.
std::string word_at(std::string_view text) {
  const auto end = text.find_first_of(" \t,;()");
  auto word = text.substr(0, end);
  while (!word.empty() && (word.back() == ':' || word.back() == '.')) word.remove_suffix(1);
  return one_line(word, 64);
}

std::size_t find(std::string_view text, std::string_view lower, std::string_view words) {
  const bool any_case = std::none_of(words.begin(), words.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return (any_case ? lower : text).find(words);
}

// `lower`: the text in lower case.
std::string device_of(const Pattern& pattern, std::string_view text, std::string_view lower) {
  switch (pattern.names) {
    case Names::none: break;
    case Names::last_pci: return last_pci_address(text);
    case Names::memory: {
      const auto at = text.find("MC");
      const auto end = text.find_first_not_of("0123456789", at + 2);
      return "mc" + std::string(text.substr(at + 2, end == text.npos ? text.npos : end - at - 2));
    }
    case Names::before_colon: {
      const auto before = text.substr(0, text.find(": "));
      const auto blank = before.find_last_of(' ');
      const auto name = blank == before.npos ? before : before.substr(blank + 1);
      return word_at(name.starts_with("md/") ? name.substr(name.rfind(':') + 1) : name);  // "md/raid1:md0"
    }
    case Names::after_needle: {
      const std::string_view needle = pattern.second;
      return word_at(text.substr(find(text, lower, needle) + needle.size()));
    }
    case Names::in_brackets: {
      const auto open = text.find('('), close = text.find(')', open == text.npos ? 0 : open);
      if (open == text.npos || close == text.npos) return {};
      auto inside = text.substr(open + 1, close - open - 1);
      for (const std::string_view kind : {"device ", "slave "})
        if (inside.starts_with(kind)) inside.remove_prefix(kind.size());
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

// Whether a line calls its error "Fatal", or "Nonfatal" or "Non-fatal"; absent: neither.
std::optional<bool> says_fatal(std::string_view lower) {
  std::optional<bool> fatal;
  for (auto at = lower.find("fatal"); at != lower.npos; at = lower.find("fatal", at + 1)) {
    const auto before = lower.substr(0, at);
    const bool non = before.ends_with("non") || before.ends_with("non-") || before.ends_with("non ");
    fatal = fatal.value_or(false) || !non;
  }
  return fatal;
}

// "NVRM: Xid (PCI:0000:1b:00): 79, pid=..." and "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32".
std::optional<KernelEvent> parse_xid(std::string_view text, std::string_view lower) {
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
  const auto fatal = says_fatal(lower);
  if (is_switch) {
    event.problem = fatal.value_or(false) ? "sxid-fatal" : "sxid";
    return event;
  }
  const auto xid = find_xid(*number);
  event.problem = !xid                               ? "xid-unknown"
                  : xid->severity == Severity::fault ? "xid-fatal"
                  : xid->severity == Severity::info  ? "xid-application"
                                                     : "xid-hardware";
  // Errors of NVLink 5 have the same numbers whether or not they are fatal.
  if (*number >= 144 && *number <= 150 && fatal.value_or(false)) event.problem = "xid-fatal";
  // "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)": after a reset.
  if (*number == 154 && text.find("to 0x0 (None)") != text.npos) event.problem = "";
  return event;
}

std::optional<KernelEvent> parse_line(std::string_view text, const std::string& pci) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  auto event = parse_xid(text, lower);
  for (const Pattern& pattern : patterns) {
    if (event) break;
    if (find(text, lower, pattern.first) == text.npos || find(text, lower, pattern.second) == text.npos) continue;
    event.emplace();
    event->kind = pattern.kind;
    event->problem = pattern.problem;
    event->device = device_of(pattern, text, lower);
    if (event->device.empty() && pattern.names == Names::last_pci) event->device = pci;
  }
  return event;
}

}  // namespace

std::string last_pci_address(std::string_view text) {
  constexpr std::size_t domain = 4;  // digits before the first colon
  for (auto colon = text.rfind(':'); colon != text.npos && colon >= domain; colon = text.rfind(':', colon - 1)) {
    const auto start = colon - domain;
    if (address_length(text.substr(start)) > 0 && (start == 0 || !hex(text[start - 1])))
      return address(text.substr(start));
  }
  return {};
}

std::string speaker_of(std::string_view text) {
  const auto end = text.find_first_of(" \n");
  return end != text.npos && end > 0 && text[end - 1] == ':' ? std::string(text.substr(0, end)) : std::string();
}

std::vector<KernelEvent> parse_kernel_message(std::string_view message, const std::string& pci) {
  const std::string speaker = speaker_of(message), own = last_pci_address(message);
  std::string whole(message);
  std::ranges::replace(whole, '\n', ' ');
  std::vector<std::string> parts;
  for (const std::string& line : lines(message)) {
    if (parts.empty() || (!speaker.empty() && line.starts_with(speaker)))
      parts.push_back(line);
    else
      parts.back() += " " + line;
  }
  std::vector<KernelEvent> events;
  const auto add = [&](std::string_view text) {
    if (auto event = parse_line(text, own.empty() ? pci : own)) {
      event->text = one_line(whole, 400);
      events.push_back(std::move(*event));
    }
  };
  for (const std::string& part : parts) add(part);
  if (events.empty() && parts.size() > 1) add(whole);
  return events;
}

}  // namespace assay::audit
