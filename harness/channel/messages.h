// Every message that travels over the channel: one JSON object per line, named by its "type", with the members that its
// struct lists (harness/json/members.h).
#pragma once

#include "harness/record/record.h"
#include "harness/trace/trace.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace assay {

namespace message {

// The first message of every client.
struct Hello {
  static constexpr std::string_view type = "hello";
  std::string role = "worker";  // worker, agent or guest
  std::string token = {};       // of builds before TLS, which send it in clear
  int rank = 0, size = 0;
  std::string host = "?";
  int pid = 0;
  std::string version = "unknown";
  std::string architecture = {};  // empty: not sent
  std::string plan = {};          // an agent's: fingerprint of the plan that its host was given, if any
  static void members(auto& self, auto& io) {
    io("role", self.role), io("token", self.token), io("rank", self.rank), io("size", self.size);
    io("host", self.host), io("pid", self.pid), io("version", self.version);
    io("architecture", self.architecture), io("plan", self.plan);
  }
};
// The answer to a hello that is not accepted.
struct Refused {
  static constexpr std::string_view type = "refused";
  std::string reason;
  int rank = 0;  // the rank that the Hello named
  static void members(auto& self, auto& io) { io("reason", self.reason), io("rank", self.rank); }
};

// Between supervisor and ranks.

// A case to run.
struct Case {
  static constexpr std::string_view type = "case";
  int index = 0;
  std::string family;
  Json order = Json::object();  // a CaseOrder
  static void members(auto& self, auto& io) {
    io("case", self.index), io("family", self.family), io("order", self.order);
  }
};
// Asks a rank how far it has come; it answers with a heartbeat.
struct Where {
  static constexpr std::string_view type = "where";
  static void members(auto&, auto&) {}
};
// The work is done; either end may send this.
struct End {
  static constexpr std::string_view type = "end";
  static void members(auto&, auto&) {}
};
struct Heartbeat {
  static constexpr std::string_view type = "heartbeat";
  std::uint64_t begun = 0, ended = 0;  // collectives that a rank entered and left
  std::string call;                    // the last call that it entered
  static void members(auto& self, auto& io) { io("begun", self.begun), io("ended", self.ended), io("call", self.call); }
};
// A rank enters a phase of its case.
struct Phase {
  static constexpr std::string_view type = "span";
  std::string name;
  static void members(auto& self, auto& io) { io("name", self.name); }
};
// A fault is about to be injected.
struct Injected {
  static constexpr std::string_view type = "fault";
  std::string name;
  static void members(auto& self, auto& io) { io("name", self.name); }
};
// A rank's part of the record of a case. Without an index, under --each-host, a whole record: of a host, or to it from
// the run that is resumed.
struct Finished {
  static constexpr std::string_view type = "record";
  std::optional<int> index = {};
  Record record;
  static void members(auto& self, auto& io) { io("case", self.index), io.required("record", self.record); }
};
// The sender cannot go on.
struct Abort {
  static constexpr std::string_view type = "abort";
  std::optional<int> index = {};
  std::optional<Record> record = {};
  std::string reason = "it stopped without a reason";
  static void members(auto& self, auto& io) {
    io("case", self.index), io("record", self.record), io("reason", self.reason);
  }
};
// A value that rank 0 shares with the others.
struct Share {
  static constexpr std::string_view type = "share";
  std::string name, value;
  static void members(auto& self, auto& io) { io("name", self.name), io("value", self.value); }
};
// Text for a file below the run directory.
struct FileText {
  static constexpr std::string_view type = "file";
  std::string name, text;
  bool replace = false;  // replaces the file's contents; else it is appended
  static void members(auto& self, auto& io) {
    io("name", self.name), io("text", self.text), io("replace", self.replace);
  }
};
struct Timeline {
  static constexpr std::string_view type = "timeline";
  std::vector<trace::Entry> entries;
  static void members(auto& self, auto& io) { io.required("entries", self.entries); }
};

// Between supervisor and the process of each host under --each-host.

// Some of the plan's cases.
struct PlanCases {
  static constexpr std::string_view type = "plan";
  Json cases = Json::array();
  static void members(auto& self, auto& io) { io("cases", self.cases); }
};
// Runs the cases that were sent.
struct Go {
  static constexpr std::string_view type = "go";
  std::string device;
  bool share_gpu = false;
  Json plan = Json::object();    // without its cases
  std::vector<double> timeouts;  // timeouts of the cases; 0: derived from the estimate
  std::map<std::string, std::string> labels;
  std::vector<std::string> flags;
  Json faults = Json::array();  // a set of Fault
  static void members(auto& self, auto& io) {
    io("device", self.device), io("share_gpu", self.share_gpu), io("plan", self.plan), io("timeouts", self.timeouts);
    io("labels", self.labels), io("flags", self.flags), io("faults", self.faults);
  }
};
struct Begin {
  static constexpr std::string_view type = "begin";
  std::string key;
  static void members(auto& self, auto& io) { io("key", self.key); }
};
struct Machine {
  static constexpr std::string_view type = "machine";
  Json environment = Json::object(), findings = Json::array();
  static void members(auto& self, auto& io) { io("environment", self.environment), io("findings", self.findings); }
};
// A line for stderr.
struct Note {
  static constexpr std::string_view type = "note";
  std::string text;
  static void members(auto& self, auto& io) { io("text", self.text); }
};

// Between supervisor and agents.

// The HostInfo of an agent's host.
struct Host {
  static constexpr std::string_view type = "host";
  Json info = Json::object();
  static void members(auto& self, auto& io) { io("info", self.info); }
};
// Asks for the time, and answers.
struct Clock {
  static constexpr std::string_view type = "clock";
  std::int64_t sent = 0, wall = 0;
  static void members(auto& self, auto& io) { io("sent", self.sent), io("wall", self.wall); }
};
// Starts a process: a subcommand of this program, or a line of sh.
struct Start {
  static constexpr std::string_view type = "start";
  int id = 0;
  std::string subcommand = {};
  std::optional<std::string> command = {};
  std::map<std::string, std::string> variables = {};
  static void members(auto& self, auto& io) {
    io("id", self.id), io("subcommand", self.subcommand), io("command", self.command);
    io("variables", self.variables);
  }
};
struct Stop {
  static constexpr std::string_view type = "stop";
  int id = 0;
  static void members(auto& self, auto& io) { io("id", self.id); }
};
// Ends all processes; sent back when they have ended.
struct Clear {
  static constexpr std::string_view type = "clear";
  int id = 0;
  static void members(auto& self, auto& io) { io("id", self.id); }
};
// Text that a process printed.
struct Printed {
  static constexpr std::string_view type = "output";
  int id = 0;
  std::string text;
  static void members(auto& self, auto& io) { io("id", self.id), io("text", self.text); }
};
struct Ended {
  static constexpr std::string_view type = "ended";
  int id = 0, status = 0;  // as from wait()
  static void members(auto& self, auto& io) { io("id", self.id), io("status", self.status); }
};
// A guest's request: run a line of sh on a host.
struct Shell {
  static constexpr std::string_view type = "shell";
  std::string target, command;
  static void members(auto& self, auto& io) { io("target", self.target), io("command", self.command); }
};

}  // namespace message

using Message =
    std::variant<message::Hello, message::Refused, message::Case, message::Where, message::End, message::Heartbeat,
                 message::Phase, message::Injected, message::Finished, message::Abort, message::Share,
                 message::FileText, message::Timeline, message::PlanCases, message::Go, message::Begin,
                 message::Machine, message::Note, message::Host, message::Clock, message::Start, message::Stop,
                 message::Clear, message::Printed, message::Ended, message::Shell>;

// One line, without its newline.
std::string encode(const Message& message);
// Throws Error when the line is not JSON, its type is unknown, or a member has the wrong type. Absent members keep
// their defaults.
Message decode(std::string_view line);
// The same of a client's first line; nothing when it is a message of another type.
std::optional<message::Hello> decode_hello(std::string_view line);

}  // namespace assay
