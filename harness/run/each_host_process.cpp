#include "harness/run/each_host_process.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/device/cpu/team.h"
#include "harness/machine/environment.h"
#include "harness/machine/findings.h"
#include "harness/record/json_reader.h"
#include "harness/run/cases.h"
#include "harness/run/end_signals.h"
#include "harness/run/messages.h"
#include "harness/run/progress.h"
#include "harness/run/worker_link.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace assay {

namespace {

// What the supervisor is told of the cases instead of a terminal.
class LinkProgress final : public Progress {
 public:
  explicit LinkProgress(WorkerLink& link) : Progress(0, 0), link_(link) {}
  void begin(const std::string& key, int ranks, double seconds) override {
    link_.send({{"type", "begin"}, {"key", key}, {"ranks", ranks}, {"seconds", seconds}});
  }
  void phase(const std::string&) override {}
  void finish(const Record&) override {}  // the record itself tells
  void note(const std::string& text) override {
    link_.send({{"type", "note"}, {"text", fmt::format("{}: {}", this_host(), text)}});
  }
  void tick() override {}

 private:
  WorkerLink& link_;
};

struct Order {
  RunRequest request;
  RunData before;
  std::vector<double> timeouts;  // of the plan's cases; 0: none was asked for
};

// The messages that the supervisor sends first: records of before, the plan in parts, then what to do with it.
Order take_order(WorkerLink& link) {
  Order order;
  Json cases = Json::array();
  for (;;) {
    Json message = link.next();
    if (message.is_null()) throw Error("the supervisor let it go before it had its order");
    const JsonReader reader(message, "");
    const std::string type = reader.text("type");
    if (type == "before") {
      order.before.records.push_back(Record::from_json(reader.object("record")));
    } else if (type == "plan") {
      for (Json& one : message["cases"]) cases.push_back(std::move(one));
    } else if (type == "go") {
      order.before.run["plan"] = reader.object("plan");
      order.before.run["plan"]["cases"] = std::move(cases);
      order.before.run["device"] = reader.text("device");
      order.request.plan.device = device_kind_from(reader.text("device")).value_or(DeviceKind::cpu);
      order.request.share_gpu = reader.flag("share_gpu", false);
      const JsonReader labels = reader.child("labels");
      for (const std::string& name : labels.names()) order.request.labels[name] = labels.text(name);
      order.request.flags = reader.texts("flags");
      for (const std::string& name : reader.texts("faults"))
        if (const auto fault = fault_from(name)) order.request.faults.insert(*fault);
      for (const Json& seconds : message.value("timeouts", Json::array()))
        order.timeouts.push_back(seconds.is_number() ? seconds.get<double>() : 0);
      return order;
    }
  }
}

void run_order(WorkerLink& link, Order order, std::span<const Family> families,
               const std::function<void(RunRequest&)>& fit) {
  AllocatedHost here;
  here.name = this_host();
  here.here = true;
  order.request.allocation.hosts = {std::move(here)};
  fit(order.request);
  Prepared prepared;
  prepared.plan = plan_from_expanded(order.before.run.at("plan"), "the supervisor's plan", families,
                                     order.request.limits.cpus, order.request.plan.device);
  for (std::size_t i = 0; i < std::min(order.timeouts.size(), prepared.plan.cases.size()); ++i)
    prepared.plan.cases[i].timeout_seconds = order.timeouts[i];
  prepared.before = std::move(order.before);
  prepared.hosts.allocation = order.request.allocation;
  prepared.hosts.infos = {probe_host(order.request.gpus.value_or(0))};
  settle_launcher(order.request, prepared);
  const Machine machine = probe_machine();
  link.send({{"type", "host"},
             {"environment", environment_json(machine)},
             {"findings", to_json(find_spoilers(machine, present_circumstances()))}});
  CaseSinks sinks;
  sinks.record = [&link](Record record) { link.send({{"type", "record"}, {"record", record.to_json()}}); };
  sinks.file = [&link](const std::string& name, std::string_view text, bool anew) {
    link.send(to_message(name, text, anew));
  };
  sinks.progress = [&link](std::size_t, double) { return std::make_unique<LinkProgress>(link); };
  run_cases(order.request, prepared, order.request.labels, sinks);
}

}  // namespace

int each_host_main(std::span<const Family> families, const std::function<void(RunRequest&)>& fit) {
  if (std::getenv("ASSAY_CPUS")) cpu::bind_this_thread(cpu::rank_cpus());  // and all that it starts
  block_end_signals();                                                     // before the link's thread starts
  WorkerLink link(rank_place());
  try {
    run_order(link, take_order(link), families, fit);
    link.send({{"type", "done"}});
  } catch (const std::exception& error) {
    link.send({{"type", "abort"}, {"reason", error.what()}});
  }
  // Until it is let go: what was sent is read by then.
  while (!link.next().is_null()) {
  }
  return 0;
}

}  // namespace assay
