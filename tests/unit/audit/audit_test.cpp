// The kernel's log: formats, dates, messages and devices; kinds of problems. Whole machines: tests/cli/audit_test.py.
#include "harness/audit/audit.h"

#include "harness/audit/areas.h"
#include "harness/audit/kernel_log.h"
#include "harness/audit/log_file.h"
#include "harness/audit/xids.h"
#include "harness/core/error.h"
#include "harness/core/utc.h"
#include "harness/json/members.h"
#include "tests/unit/machine/fake_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace assay::audit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

double at(const char* text) { return static_cast<double>(*parse_utc(text)); }
const double now = at("2026-11-23T12:00:00Z");

std::vector<LogLine> read_lines(std::string_view text, std::optional<double> boot = {}, bool bare = false) {
  return LogReader({now, false, boot}, bare).read(text);
}

TEST(KernelLog, KmsgIsDatedFromTheBoot) {
  const auto found = read_lines(
      "6,339,5140900,-;NVRM: loading\n SUBSYSTEM=pci\n[   12.500000] second\n   line\nnoise\n no\n4,1,-5,-;x", 1000);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_DOUBLE_EQ(*found[0].unix_seconds, 1005.1409);
  EXPECT_EQ(found[0].text, "NVRM: loading");
  EXPECT_DOUBLE_EQ(*found[1].unix_seconds, 1012.5);
  EXPECT_EQ(found[1].text, "second\nline");
  EXPECT_EQ(read_lines("6,1,1,-;a\\x0ab", 0)[0].text, "a\nb");
  EXPECT_FALSE(read_lines("6,339,5140900,-;NVRM: loading")[0].unix_seconds);
}

TEST(KernelLog, SyslogHasSeveralKindsOfDates) {
  const auto found = read_lines(
      "2026-11-20T03:12:44.123456+00:00 h kernel: [5.1] a\n2026-11-20T05:12:44+02:00 h kernel: b\n"
      "2026-11-20T03:12:44Z h kernel: c\n1763608364.5 h kernel: d\nNov 20 03:12:44 h kernel: [    7.25] e\n"
      "Nov  2 03:12:44 h kernel: f\nDec 24 00:00:00 h kernel: g\nNov 20 03:12:44 h sshd[1]: no\n"
      " no\n2026-13-20T03:12:44Z h kernel: no\nNov 20 99:12:44 h kernel: no\nkernel: no\n");
  ASSERT_THAT(found, SizeIs(7));
  const auto moment = at("2026-11-20T03:12:44Z");
  for (const std::size_t i : {0, 1, 2, 4}) EXPECT_EQ(found[i].unix_seconds, moment) << found[i].text;
  EXPECT_EQ(found[0].text, "a");
  EXPECT_EQ(found[4].text, "e");
  EXPECT_EQ(found[3].unix_seconds, 1763608364.5);
  EXPECT_EQ(found[5].unix_seconds, at("2026-11-02T03:12:44Z"));
  EXPECT_EQ(found[6].unix_seconds, at("2025-12-24T00:00:00Z"));  // the last that has been
}

// The only event of a message.
std::optional<KernelEvent> parse_one(std::string_view message) {
  const auto events = parse_kernel_message(message);
  return events.size() == 1 ? std::optional(events[0]) : std::nullopt;
}

TEST(KernelLog, XidsNameTheGpuAndTheNumber) {
  const auto event = parse_one("NVRM: Xid (PCI:0000:1B:00): 79, pid=1, GPU has fallen off the bus.");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, "xid");
  EXPECT_EQ(event->device, "0000:1b:00.0");
  EXPECT_EQ(event->code, 79);
  EXPECT_EQ(event->problem, "xid-fatal");
  EXPECT_EQ(parse_one("NVRM: Xid (0000:1b:00): 31, Ch 0000000b")->device, "0000:1b:00.0");
  EXPECT_EQ(parse_one("NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 94, x")->device, "0000:1b:00.0") << "of a slice (MIG)";
  EXPECT_EQ(parse_one("NVRM: Xid (PCI:0000:1b:00): 13, x")->problem, "xid-application");
  EXPECT_EQ(parse_one("NVRM: Xid (PCI:0000:1b:00): 5000, x")->problem, "xid-unknown");
  EXPECT_EQ(parse_one("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 32")->problem, "sxid-fatal");
}

TEST(KernelLog, OrdinaryMessagesAreNoEvidence) {
  for (const char* text :
       {"", "NVRM: loading NVIDIA UNIX Open Kernel Module", "EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "ata1: SATA link down (SStatus 0 SControl 300)", "mlx5_core 0000:11:00.0 eth0: Link up",
        "EDAC MC0: Giving out device", "pcieport 0000:00:01.0: AER: enabled with IRQ 26",
        "nvme nvme0: 64/0/0 default/read/poll queues", "NVRM: Xid (", "NVRM: Xid (PCI:0000:1b:00): many",
        "said: NVRM: Xid (PCI:0000:1b:00): 79, x"})
    EXPECT_THAT(parse_kernel_message(text), IsEmpty()) << text;
}

TEST(KernelLog, RandomTextBreaksNothing) {
  std::mt19937 random(1);
  const std::vector<std::string> pieces = {"NVRM: Xid (",
                                           "PCI:0000:1b:00",
                                           "): ",
                                           "79",
                                           ", ",
                                           "EDAC MC",
                                           " UE ",
                                           "(",
                                           ")",
                                           ": Link is Down",
                                           "mlx5_core",
                                           "Port module event",
                                           "Cable",
                                           "nvme",
                                           "timeout, aborting",
                                           "I/O error",
                                           ", dev ",
                                           "\xff\xfe",
                                           "\n",
                                           "6,1,2,-;",
                                           "2026-11-20T03:12:44Z h kernel: ",
                                           "AER:",
                                           "(Fatal)",
                                           " ",
                                           "NETDEV WATCHDOG: ",
                                           std::string("\0", 1),
                                           "Nov 20 03:12:44 ",
                                           "nfs: server ",
                                           "not responding"};
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto left = random() % 9; left > 0; --left) text += pieces[random() % pieces.size()];
    for (const KernelEvent& event : parse_kernel_message(text)) {
      EXPECT_EQ(event.text.find('\n'), std::string::npos);
      EXPECT_FALSE(event.kind.empty());
    }
    read_lines(text, 5, true);
  }
}

TEST(KernelLog, AnEventInTwoSourcesIsListedOnce) {
  FakeRoot fake;
  const std::string xid = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.";
  const double boot = at("2026-11-23T00:00:00Z");
  // The kernel's clock is half a minute off; the second one is only in /dev/kmsg.
  fake.file("var/log/kern.log", "2026-11-23T01:00:30+00:00 h kernel: " + xid)
      .file("var/log/messages", "Nov 23 01:00:30 h kernel: " + xid)
      .file("dev/kmsg", "3,1,3600000000,-;" + xid + "\n3,2,7200000000,-;" + xid);
  const auto log = read_kernel_log(fake.root(), now, 7, boot);
  ASSERT_THAT(log.events, SizeIs(1));
  EXPECT_EQ(log.events[0].count, 2);
  EXPECT_EQ(log.events[0].first_seconds, at("2026-11-23T01:00:00Z"));
  EXPECT_EQ(log.events[0].unix_seconds, at("2026-11-23T02:00:00Z"));
  EXPECT_THAT(log.sources, SizeIs(3));
}

TEST(KernelLog, SeverityFollowsTheWordsOfTheMessage) {
  const auto problem = [](const std::string& rest) {
    return parse_one("NVRM: Xid (PCI:0000:1b:00): " + rest)->problem;
  };
  EXPECT_EQ(problem("144, SAW_MVB Fatal XC0 i0 Link 01"), "xid-fatal");
  EXPECT_EQ(problem("150, MSE fatal XC0"), "xid-fatal");
  for (const char* text :
       {"144, SAW_MVB Nonfatal XC0", "147, TREX Non-fatal XC0", "148, NVLPW NON-FATAL", "149, NETIR"})
    EXPECT_EQ(problem(text), "xid-hardware") << text;
  EXPECT_EQ(problem("31, a fatal MMU fault"), "xid-application");
  EXPECT_EQ(parse_one("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32")->problem, "sxid");
}

TEST(KernelLog, AMessageOfSeveralLinesIsOne) {
  const auto lost = parse_one(
      "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\n"
      "NVRM: fallen off the bus and is not responding to commands.");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->problem, "gpu-lost");
  EXPECT_EQ(lost->device, "0000:b3:00.0");
  EXPECT_THAT(lost->text, HasSubstr("0000:b3:00.0 NVRM: (PCI ID"));
  // What does not begin as the first line goes with the line before it; each that does counts by itself.
  EXPECT_EQ(parse_one("NVRM: Xid (PCI:0000:1b:00): 149, NETIR_LINK_EVT\nFatal XC0")->problem, "xid-fatal");
  EXPECT_THAT(parse_kernel_message("NVRM: Xid (PCI:0000:1b:00): 79, x\nNVRM: Xid (PCI:0000:1c:00): 48, x"), SizeIs(2));
  EXPECT_EQ(parse_one("EXT4-fs error (device sda1): a\nb")->device, "sda1");
}

TEST(KernelLog, AReportInSeveralMessagesFindsItsDevice) {
  FakeRoot fake;
  const std::string start = "2026-11-23T01:00:30+00:00 h kernel: ";
  fake.file("var/log/kern.log", start + "NVRM: The NVIDIA GPU 0000:b3:00.0\n" + start + "pcieport 0000:3a:01.0: x\n" +
                                    start + "NVRM: (PCI ID: 10de:26b5) installed in this system has\n" + start +
                                    "NVRM: fallen off the bus and is not responding to commands.\n"
                                    "2026-11-23T01:00:40+00:00 h kernel: NVRM: fallen off the bus");
  std::set<std::string> devices;
  for (const KernelEvent& event : read_kernel_log(fake.root(), now, 7, {}).events) devices.insert(event.device);
  EXPECT_EQ(devices, (std::set<std::string>{"", "0000:b3:00.0"}));
}

TEST(KernelLog, FaultsAreKeptWhateverElseIsThere) {
  FakeRoot fake;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "3,1,3600000000,-;I/O error, dev sd" + std::to_string(i) + ", sector 8\n";
  text += "3,1,3600000000,-;NVRM: Xid (PCI:0000:1b:00): 79, x\n";
  const auto log = read_kernel_log(fake.file("dev/kmsg", text).root(), now, 7, now - 7200);
  EXPECT_THAT(log.events, SizeIs(4001));
  EXPECT_EQ(std::ranges::count(log.events, "xid-fatal", &KernelEvent::problem), 1);
  EXPECT_THAT(log.cut, testing::ElementsAre(HasSubstr("1000 messages")));
  EXPECT_TRUE(std::ranges::any_of(audit_machine(fake.root(), now).problems,
                                  [](const Finding& problem) { return problem.id == "kernel-log-cut"; }));
}

TEST(KernelLog, ALineFromTheFutureMeansAWrongClock) {
  FakeRoot fake;
  fake.file("var/log/kern.log", "2026-11-25T01:00:30+00:00 h kernel: x");
  EXPECT_EQ(read_kernel_log(fake.root(), now, 7, {}).latest_future, at("2026-11-25T01:00:30Z"));
  const auto problems = audit_machine(fake.root(), now).problems;
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].id, "clock-wrong");
  EXPECT_THAT(problems[0].seen, HasSubstr("2026-11-25T01:00:30Z"));
}

// The only message of a log in one line.
LogLine only_line(std::string_view text, LogTally* tally = nullptr) {
  LogReader reader({now, false, {}});
  const auto lines = reader.read(text);
  EXPECT_THAT(lines, SizeIs(1)) << text;
  if (tally) *tally = reader.tally();
  return lines.empty() ? LogLine() : lines[0];
}

TEST(LogLines, EveryFormOfAMessageIsRead) {
  const auto moment = at("2025-11-20T03:12:44Z");
  const struct {
    const char* text;
    std::optional<double> unix_seconds, uptime;
  } forms[] = {
      {"[   12.500000] NVRM: x", {}, 12.5},
      {"[   12.500000][  T123] NVRM: x", {}, 12.5},
      {"<3>[   12.500000] NVRM: x", {}, 12.5},
      {"kern  :err   : [   12.500000] NVRM: x", {}, 12.5},
      {"\x1b[32m[   12.500000] \x1b[0m\x1b[33mNVRM: \x1b[0mx", {}, 12.5},
      {"[   12.500000] NVRM: x\r\n", {}, 12.5},
      {"[Thu Nov 20 03:12:44 2025] NVRM: x", moment, {}},
      {"2025-11-20T04:12:44,123456+01:00 NVRM: x", moment, {}},
      {"kern  :err   : 2025-11-20T03:12:44,123456+00:00 NVRM: x", moment, {}},
      {"[  +0.000003] NVRM: x", {}, {}},
      {"3,100,12500000,-,caller=T1;NVRM: x", {}, 12.5},
      {"2025-11-20T04:12:44+0100 n1 kernel: NVRM: x", moment, {}},
      {"Thu 2025-11-20 03:12:44 UTC n1 kernel: NVRM: x", moment, {}},
      {"2025-11-20 03:12:44 n1 kern.err kernel: [   12.500000] NVRM: x", moment, 12.5},
      {"Nov 20 03:12:44 2025 n1 kernel: NVRM: x", moment, {}},
      {"<3>1 2025-11-20T03:12:44.5Z n1 kernel - - [a@1 b=\"c\"] NVRM: x", moment, {}},
      {"[   12.500000] n1 kernel: NVRM: x", {}, 12.5},
      {R"({"_TRANSPORT":"kernel","MESSAGE":"NVRM: x","__REALTIME_TIMESTAMP":"1763608364000000"})", moment, {}},
      {R"({"SYSLOG_IDENTIFIER":"kernel","MESSAGE":[78,86,82,77,58,32,120],"__MONOTONIC_TIMESTAMP":"12500000"})",
       {},
       12.5}};
  for (const auto& form : forms) {
    const LogLine line = only_line(form.text);
    EXPECT_EQ(line.text, "NVRM: x") << form.text;
    EXPECT_EQ(line.unix_seconds, form.unix_seconds) << form.text;
    EXPECT_EQ(line.uptime_seconds, form.uptime) << form.text;
  }
}

TEST(LogLines, OtherProgramsAreNotTheKernel) {
  LogReader reader({now, false, {}}, true);
  EXPECT_THAT(
      reader.read("Nov 20 03:12:44 n1 sshd[1]: NVRM: Xid (PCI:0000:1b:00): 79, x\n  more of it\n"
                  "daemon:info  : [   12.5] NVRM: Xid (PCI:0000:1b:00): 79, x\n"
                  R"({"_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"a","MESSAGE":"NVRM: Xid (PCI:0000:1b:00): 79, x"})"
                  "\nno form\n{\"a\":1}\n-- Boot 12 --\n-- No entries --\n"),
      IsEmpty());
  EXPECT_EQ(reader.tally().others, 3);
  EXPECT_EQ(reader.tally().unread, 2);
  EXPECT_EQ(reader.tally().first_unread, 5);
  EXPECT_EQ(reader.tally().first_unread_text, "no form");
  EXPECT_FALSE(reader.looks_like_a_kernel());
}

TEST(LogLines, WhatADateLacksIsCounted) {
  LogTally tally;
  EXPECT_EQ(only_line("Nov 20 03:12:44 n1 kernel: x", &tally).unix_seconds, at("2026-11-20T03:12:44Z"));
  EXPECT_EQ(tally.without_zone, 1);
  EXPECT_EQ(tally.without_year, 1);
  EXPECT_FALSE(only_line("1970-01-01T00:00:05Z n1 kernel: [    5.0] x", &tally).unix_seconds);
  EXPECT_EQ(tally.unset, 1);
  only_line("[    5.0] x", &tally);
  EXPECT_EQ(tally.undated, 1);
}

TEST(LogLines, ALogWithoutTimesIsReadOnlyIfItLooksLikeAKernels) {
  LogReader reader({now, false, {}}, true);
  EXPECT_THAT(reader.read("Linux version 6.8.0\nNVRM: Xid (PCI:0000:1b:00): 79, x\n"), SizeIs(2));
  EXPECT_TRUE(reader.looks_like_a_kernel());
  LogReader prose({now, false, {}}, true);
  prose.read("hello\nworld\n");
  EXPECT_FALSE(prose.looks_like_a_kernel());
}

std::vector<KernelEvent> count(const std::vector<std::string>& pieces, std::optional<double> boot = {},
                               int* boots = nullptr) {
  EventCounts counts(0, now, boot);
  LogReader reader({now, false, {}}, true);
  for (const std::string& piece : pieces) counts.add(reader.read(piece));
  if (boots) *boots = counts.boots();
  return counts.finish();
}

TEST(KernelLog, AFileTellsOnlyOfWhatWasBeforeTheJournal) {
  EventCounts counts(0, now, {});
  counts.only_before(1.7e9);
  LogReader reader({now, false, {}});
  counts.add(
      reader.read("1699999999.5 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, x\n"
                  "1700000000.5 n1 kernel: NVRM: Xid (PCI:0000:2b:00): 79, x\n"));
  const auto events = counts.finish();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].device, "0000:1b:00.0");
}

TEST(Boots, AFaultIsOfTheLastBootOfALogOrNot) {
  const std::string fault = "[ 5000.0] NVRM: Xid (PCI:0000:1b:00): 79, x\n", start = "[    0.000000] Linux version 6\n",
                    rest = "[    1.0] a\n[    2.0] b\n[    3.0] c\n[    4.0] d\n";
  const auto earlier = [&](const std::vector<std::string>& pieces, int expected_boots) {
    int boots = 0;
    const auto events = count(pieces, {}, &boots);
    EXPECT_EQ(boots, expected_boots);
    EXPECT_THAT(events, SizeIs(1));
    return !events.empty() && events[0].earlier_boot;
  };
  EXPECT_FALSE(earlier({start + rest + fault}, 1));
  EXPECT_TRUE(earlier({start + rest + fault + start + rest}, 2));
  EXPECT_TRUE(earlier({start + rest + fault, start + rest}, 2)) << "in pieces";
  EXPECT_FALSE(earlier({start + rest + start + rest + fault}, 2));
  EXPECT_TRUE(earlier({rest + fault + rest}, 2)) << "by the time since the boot alone";
  EXPECT_FALSE(earlier({"[    2.0] a\n[    1.5] b\n" + fault}, 1)) << "lines of several CPUs";
  // Parts of pstore stand the newest first.
  EXPECT_FALSE(earlier({"Panic#1 Part1\n<6>[ 6000.0] a\nPanic#1 Part2\n<6>" + fault}, 1));
  const auto entry = [](const char* boot, const char* text) {
    return std::string(R"({"_TRANSPORT":"kernel","MESSAGE":")") + text + R"(","_BOOT_ID":")" + boot + "\"}\n";
  };
  EXPECT_TRUE(earlier({entry("a", "NVRM: Xid (PCI:0000:1b:00): 79, x") + entry("b", "x")}, 2));
  EXPECT_FALSE(earlier({entry("a", "x") + entry("b", "NVRM: Xid (PCI:0000:1b:00): 79, x")}, 2));
}

TEST(Boots, ABootOfTwoMessagesIsOne) {
  const std::string start = "[    0.000000] Linux version 6\n", fault = "[    0.5] NVRM: Xid (PCI:0000:1b:00): 79, x\n";
  EXPECT_TRUE(count({start + fault + start + "[    1.0] a\n"})[0].earlier_boot);
  EXPECT_FALSE(count({start + "[    0.2] a\n" + start + fault})[0].earlier_boot);
}

TEST(Boots, AClockThatWasYearsBehindHidesNoFault) {
  const std::string begin = "2015-01-01T00:00:05Z n1 kernel: Linux version 6\n",
                    fault = "2015-01-01T00:00:06Z n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, x\n",
                    later = "2026-11-23T10:00:00Z n1 kernel: x\n",
                    boot = "2026-11-23T09:00:01Z n1 kernel: Linux version 6\n";
  const auto events = [&](const std::string& log) {
    EventCounts counts(at("2026-11-20T00:00:00Z"), at("2026-11-24T00:00:00Z"), at("2026-11-23T09:00:00Z"));
    counts.add(LogReader({now, false, {}}, true).read(log));
    return counts.finish();
  };
  ASSERT_THAT(events(begin + fault + later), SizeIs(1)) << "the clock was set later in the same boot";
  EXPECT_FALSE(events(begin + fault + later)[0].earlier_boot);
  EXPECT_THAT(events(begin + fault + boot + later), SizeIs(0)) << "another boot began since, and it is too old";
  EXPECT_THAT(events(begin + fault), SizeIs(0)) << "nothing says that the log goes on";
}

TEST(Boots, AJournalMayHaveTheNewestFirst) {
  const std::string fault = "NVRM: Xid (PCI:0000:1b:00): 79, x\n";
  const auto line = [](int second, const std::string& text) {
    return std::to_string(1795435200 + second) + ".0 n1 kernel: " + text + "\n";
  };
  const std::string old = line(20, fault) + line(10, "Linux version 6"),
                    fresh = line(50, "a") + line(40, "Linux version 6");
  EXPECT_TRUE(count({fresh + "-- Boot 12 --\n" + old})[0].earlier_boot);
  EXPECT_TRUE(count({fresh, old})[0].earlier_boot) << "in pieces";
  EXPECT_FALSE(count({line(60, fault) + fresh + "-- Boot 12 --\n" + line(10, "x")})[0].earlier_boot);
}

TEST(Boots, AClockThatWasWrongInThisBootHidesNoFault) {
  const std::string fault = " n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, x\n";
  const std::string begin = "2026-11-21T00:00:00Z n1 kernel: Linux version 6\n", wrong = "2026-11-21T00:00:05Z" + fault,
                    right = "2026-11-23T10:00:00Z n1 kernel: x\n";
  const double boot = at("2026-11-23T09:00:00Z");
  EXPECT_FALSE(count({begin + wrong + right}, boot)[0].earlier_boot) << "the clock was set later in the same boot";
  EXPECT_TRUE(count({begin + wrong}, boot)[0].earlier_boot) << "nothing says that the log goes on after the boot";
  EXPECT_TRUE(count({begin + wrong + "2026-11-23T09:00:01Z n1 kernel: a\n2026-11-23T09:00:01Z n1 kernel: a\n" +
                     "2026-11-23T09:00:01Z n1 kernel: Linux version 6\n" + right},
                    boot)[0]
                  .earlier_boot)
      << "another boot began since";
  // The clock was not set at all.
  FakeRoot fake;
  fake.file("proc/stat", "btime 1795435200").file("var/log/kern.log", "1970-01-01T00:00:05Z" + fault);
  EXPECT_TRUE(std::ranges::any_of(audit_machine(fake.root(), now).problems,
                                  [](const Finding& problem) { return problem.id == "xid-fatal"; }));
}

TEST(KernelLog, MessagesOfDisksLinksAndSlotsAreSeen) {
  const struct {
    const char *text, *problem, *device;
  } messages[] = {
      {"md/raid10:md2: Disk failure on sdb1, disabling device.", "disk-lost", "sdb1"},
      {"md/raid:md5: Cannot continue operation (2/4 failed).", "disk-lost", "md5"},
      {"nvme nvme3: Disabling device after reset failure: -19", "disk-lost", "nvme3"},
      {"nvme nvme3: I/O 12 QID 4 timeout, reset controller", "disk-errors", "nvme3"},
      {"sd 0:0:1:0: rejecting I/O to offline device", "disk-lost", "0:0:1:0"},
      {"device-mapper: multipath: 253:0: Failing path 8:16.", "disk-errors", "8:16"},
      {"EXT4-fs (dm-0): I/O error while writing superblock", "filesystem-errors", "dm-0"},
      {"bond0: (slave eth2): link status definitely down, disabling slave", "link-events", "eth2"},
      {"mlx5_core 0000:5c:00.0 mlx5_5: Port: 1 LINK DOWN", "link-events", "mlx5_5"},
      {"hfi1 0000:18:00.0: hfi1_0: logical state changed to PORT_DOWN (0x1)", "link-events", "0000:18:00.0"},
      {"mlx5_core 0000:5c:00.0: mlx5_cmd_out_err:838:(pid 2): ACCESS_REG(0x805) op_mod(0x1) failed, status 2",
       "nic-command", "0000:5c:00.0"},
      {"pcieport 0000:3a:01.0: pciehp: Slot(5): Power fault", "slot-power", "0000:3a:01.0"},
      {"pcieport 0000:3a:01.0: pciehp: Slot(5): Link Down", "slot-down", "0000:3a:01.0"},
      {"pcieport 0000:3a:01.0: DPC: containment event, status:0x1f01 source:0x0000", "aer-fatal", "0000:3a:01.0"},
      {"VFS: file-max limit 1000000 reached", "file-limit", ""},
      {"Out of memory: Kill process 77 (python) score 900 or sacrifice child", "oom-kill", ""},
      {"BUG: kernel NULL pointer dereference, address: 0000000000000008", "kernel-oops", ""},
      {"python[7]: segfault at 7ff8 ip 00007f sp 00007f error 4 in libnccl.so.2.27.3[7f00+800]", "nccl-segfault", ""},
      {"clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the skew is too large",
       "clocksource", ""}};
  for (const auto& message : messages) {
    const auto event = parse_one(message.text);
    ASSERT_TRUE(event) << message.text;
    EXPECT_EQ(event->problem, message.problem) << message.text;
    EXPECT_EQ(event->device, message.device) << message.text;
  }
}

TEST(LogFile, WhatItDoesNotSayIsNamed) {
  FakeRoot fake;
  const auto audit = [&](const std::string& text) {
    fake.file("log", text);
    return audit_log((fake.path() / "log").string(), now);
  };
  const auto log = audit("[    1.0] x\n[ 5000.0] NVRM: Xid (PCI:0000:1b:00): 79, x\nnoise\n");
  EXPECT_EQ(log.messages, 2);
  ASSERT_TRUE(log.first_unread);
  EXPECT_EQ(log.first_unread->line, 3);
  EXPECT_THAT(log.unknown, testing::ElementsAre(HasSubstr("2 messages without a date")));
  ASSERT_THAT(log.audit.problems, SizeIs(1));
  EXPECT_EQ(log.audit.problems[0].seen, "XID 79 5000 s after its boot");
  EXPECT_EQ(audit("").messages, 0);
  EXPECT_EQ(audit("hello\n").messages, 0);
  EXPECT_THROW(audit("\x1f\x8b\x08"), UsageError);
  EXPECT_THROW(audit_log((fake.path() / "none").string(), now), UsageError);
  EXPECT_THROW(audit_log(fake.path().string(), now), UsageError);
}

TEST(Xids, EveryOneSaysWhatToDo) {
  int known = 0;
  for (std::int64_t number = -2; number < 1000; ++number)
    if (const auto xid = find_xid(number)) {
      ++known;
      EXPECT_EQ(xid->number, number);
      EXPECT_FALSE(xid->meaning.empty() || xid->action.empty()) << number;
    }
  EXPECT_GE(known, 40);
  for (const std::int64_t fatal : {48, 62, 64, 79, 95, 119, 120, 140, 143, 167, 169, 171, 172})
    EXPECT_EQ(find_xid(fatal)->severity, Severity::fault) << fatal;
  for (const std::int64_t of_a_program : {8, 13, 40, 76, 83, 104, 130, 139})
    EXPECT_EQ(find_xid(of_a_program)->severity, Severity::info) << of_a_program;
  for (const std::int64_t unknown : {0, 87, 138, 173}) EXPECT_FALSE(find_xid(unknown)) << unknown;
}

TEST(Audit, AnEmptyFolderHasNoFault) {
  FakeRoot fake;
  const Audit audit = audit_machine(fake.root(), now);
  for (const Finding& problem : audit.problems) EXPECT_NE(problem.severity, Severity::fault) << problem.id;
  EXPECT_THAT(audit.events, IsEmpty());
  EXPECT_EQ(json_of(static_cast<const AuditedMachine&>(audit))["events"], Json::array());
}

TEST(Audit, AReportJoinsWhatIsSeenOfOneDevice) {
  Report report;
  report.add("aer-fatal", "0000:1b:00.0", "one");
  report.add("aer-fatal", "0000:1b:00.0", "two\n");
  report.add("aer-fatal", "0000:1c:00.0", "three", "meaning", "fix");
  ASSERT_THAT(report.problems, SizeIs(2));
  EXPECT_THAT(report.problems[0].seen, testing::StartsWith("one; two"));
  EXPECT_EQ(report.problems[1].meaning, "meaning");
  EXPECT_THROW(report.add("no-such-kind", "", ""), Error);
}

}  // namespace
}  // namespace assay::audit
