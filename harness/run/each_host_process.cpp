#include "harness/run/each_host_process.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/core/whole_number.h"
#include "harness/device/cpu/team.h"
#include "harness/json/members.h"
#include "harness/machine/environment.h"
#include "harness/machine/spoilers.h"
#include "harness/process/end_signals.h"
#include "harness/run/cases.h"
#include "harness/run/progress.h"
#include "harness/run/sink.h"
#include "harness/run/worker_link.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace assay {

namespace {

// Sends progress to the supervisor instead of showing it.
class LinkProgress final : public Progress {
 public:
  explicit LinkProgress(WorkerLink& link) : link_(link) {}
  void begin(const std::string& key, int /*ranks*/, double /*estimated_seconds*/) override {
    link_.send(message::Begin{key});
  }
  void phase(const std::string&) override {}
  void finish(const Record&) override {}  // the sink sends the record
  void note(const std::string& text) override { link_.send(message::Note{text}); }
  void tick() override {}

 private:
  WorkerLink& link_;
};

class LinkSink final : public RunSink {
 public:
  explicit LinkSink(WorkerLink& link) : link_(link) {}
  void record(Record record) override { link_.send(message::Finished{.record = std::move(record)}); }
  void file(const std::string& name, std::string_view text, bool replace) override {
    link_.send(message::FileText{name, std::string(text), replace});
  }

 private:
  WorkerLink& link_;
};

struct Order {
  message::Go go;
  std::vector<Record> before;
};

// Receives records of the resumed run, the plan's cases in parts, then Go.
Order receive_order(WorkerLink& link) {
  Order order;
  Json cases = Json::array();
  while (std::optional<Message> message = link.next()) {
    if (auto* before = std::get_if<message::Finished>(&*message)) order.before.push_back(std::move(before->record));
    if (auto* plan = std::get_if<message::PlanCases>(&*message))
      for (Json& one : plan->cases) cases.push_back(std::move(one));
    if (auto* go = std::get_if<message::Go>(&*message)) {
      order.go = std::move(*go);
      order.go.plan["cases"] = std::move(cases);
      return order;
    }
  }
  throw Error("the supervisor ended it before it had its order");
}

void run_order(WorkerLink& link, Order order, std::span<const Family> families,
               const std::function<void(RunRequest&)>& fit) {
  message::Go& go = order.go;
  RunRequest request;
  request.plan.device = device_kind_from(go.device).value_or(DeviceKind::cpu);
  request.share_gpu = go.share_gpu;
  request.labels = std::move(go.labels);
  request.flags = std::move(go.flags);
  const Root root = user_root();
  std::ranges::move(flags_of(root), std::back_inserter(request.flags));
  request.faults = read_value<std::set<Fault>>(go.faults);
  request.allocation.hosts = {{.name = this_host(), .slots = std::nullopt, .user = {}, .here = true}};
  fit(request);
  Prepared prepared;
  prepared.plan =
      plan_from_expanded(go.plan, "the supervisor's plan", families, request.limits.cpus, request.plan.device);
  for (std::size_t i = 0; i < std::min(go.timeouts.size(), prepared.plan.cases.size()); ++i)
    prepared.plan.cases[i].timeout_seconds = go.timeouts[i];
  prepared.before.emplace().records = std::move(order.before);
  prepared.hosts.allocation = request.allocation;
  prepared.hosts.infos = {probe_host(request.gpus.value_or(0))};
  settle_launcher(request, prepared);
  const Machine machine = probe_machine(root);
  link.send(
      message::Machine{environment_json(machine), spoilers_json(find_spoilers(machine, present_circumstances(root)))});
  LinkProgress progress(link);
  LinkSink sink(link);
  run_cases(request, prepared, request.labels, progress, sink);
}

}  // namespace

void use_named_gpus() {
  const char* wanted = std::getenv("ASSAY_GPUS");
  if (!wanted) return;
  std::vector<std::string> left = split_commas(wanted);
  if (const char* shown = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::vector<std::string> names = split_commas(shown);
    for (const std::string& word : std::exchange(left, {}))
      if (const auto index = whole_number<std::size_t>(word); index && *index < names.size())
        left.push_back(names[*index]);
  }
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  ::setenv("CUDA_VISIBLE_DEVICES", joined(left, ",").c_str(), 1);
  ::unsetenv("ASSAY_GPUS");  // the workers see these only
}

int each_host_main(std::span<const Family> families, const std::function<void(RunRequest&)>& fit) {
  if (std::getenv("ASSAY_CPUS")) cpu::bind_this_thread(cpu::rank_cpus());  // and everything started from here
  use_named_gpus();
  block_end_signals();  // before the link's thread starts
  WorkerLink link(rank_place());
  try {
    run_order(link, receive_order(link), families, fit);
    link.send(message::End{});
  } catch (const std::exception& error) {
    link.send(message::Abort{.reason = reason_of(error)});
  }
  // Until the supervisor has read everything and ends it.
  while (link.next()) {
  }
  return 0;
}

}  // namespace assay
