// A worker: binds itself, connects, runs its orders.
#include "harness/run/worker.h"

#include "harness/comm/nccl_entry.h"
#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/team.h"
#include "harness/device/settings.h"
#include "harness/hosts/gpu_place.h"
#include "harness/hosts/placement.h"
#include "harness/process/privileges.h"
#include "harness/run/case_message.h"
#include "harness/run/execute.h"
#include "harness/run/timeline.h"
#include "harness/run/worker_link.h"
#include "harness/trace/trace.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

namespace assay {

namespace {

DeviceKind device_kind() {
  const char* name = std::getenv("ASSAY_DEVICE");
  return device_kind_from(name ? name : "cpu").value_or(DeviceKind::cpu);
}

// Binds the process to the CPUs that the supervisor chose for its rank, or else to all that the host allows.
void bind_to_share(const RankPlace& place) {
  std::vector<int> share;
  if (const char* sets = std::getenv("ASSAY_CPUS_BY_RANK"); sets && !std::getenv("ASSAY_CPUS"))
    share = cpu_list(cpu_set_of(sets, place.rank));
  cpu::restart_on(share.empty() ? cpu::rank_cpus() : share);
}

MpiThreads threads_from_environment() {
  const char* value = std::getenv("ASSAY_MPI_THREADS");
  return value && std::string_view(value) == "serialized" ? MpiThreads::serialized : MpiThreads::single;
}

// The TCP interface of this rank: of those that ASSAY_TCP_INTERFACES names, ranks of a host take one each, in turn.
void choose_interface(const RankPlace& place) {
  const char* const names = std::getenv("ASSAY_TCP_INTERFACES");
  const std::vector<std::string> all = split_commas(names ? names : "");
  if (!all.empty())
    ::setenv("OMPI_MCA_btl_tcp_if_include", all[static_cast<std::size_t>(place.local_rank) % all.size()].c_str(), 1);
}

// NCCL between GPUs, MPI between CPUs.
std::unique_ptr<Communicator> make_world(WorkerLink& link, const RankPlace& place, Device& device) {
  if (place.size == 1) return make_self_communicator(device.kind() == DeviceKind::cpu ? nullptr : &device);
  if (device.kind() == DeviceKind::cpu) {
    choose_interface(place);
    return make_mpi_communicator(threads_from_environment());
  }
  NcclWorld world;
  world.rank = place.rank;
  world.size = place.size;
  const char* supervisor = std::getenv("ASSAY_SUPERVISOR");
  world.several_hosts = supervisor && !std::string_view(supervisor).starts_with("127.0.0.1:");
  world.share_gpu = std::getenv("ASSAY_SHARE_GPU") != nullptr;
  if (const char* limit = std::getenv("ASSAY_START_LIMIT")) world.timeout_seconds = parse_seconds(limit);
  return make_nccl_communicator(world, [&](const std::string& own) {
    if (place.rank == 0) link.send(message::Share{"nccl_id", own});
    return link.shared("nccl_id", world.timeout_seconds);
  });
}

// After the case, since connections are made at the first call.
void describe_connections(Record& record, Communicator& comm) {
  try {
    if (const std::string made = comm.connections(); !made.empty()) record.labels["connections_so_far"] = made;
    for (std::string& remark : comm.remarks()) record.flags.push_back(std::move(remark));
  } catch (const std::exception& caught) {
    record.labels["connections_so_far"] = "unknown";
    record.flags.push_back(fmt::format("the transports between ranks are unknown: {}", reason_of(caught)));
  }
}

// While it lives, heartbeats carry the number of collectives this rank entered and left, even when it hangs.
class ProgressReport {
 public:
  ProgressReport(WorkerLink& link, const Communicator& comm) : link_(link) {
    link_.set_progress([&calls = comm.calls()](message::Heartbeat& heartbeat) {
      const CallCount::Seen seen = calls.seen();
      heartbeat = {seen.begun, seen.ended, seen.name};
    });
  }
  ~ProgressReport() { link_.set_progress({}); }
  ProgressReport(const ProgressReport&) = delete;
  ProgressReport& operator=(const ProgressReport&) = delete;

 private:
  WorkerLink& link_;
};

[[noreturn]] void wait_to_be_killed() {
  for (;;) pause();
}

// $ASSAY_INJECT: faults for the ranks of one host only, for drills of what finds that host. Throws Error.
std::set<Fault> faults_of_this_host() {
  std::set<Fault> faults;
  const char* text = std::getenv("ASSAY_INJECT");
  for (const std::string& word : text&&* text ? split_commas(text) : std::vector<std::string>()) {
    const auto fault = from_word<Fault>(word);
    if (!fault) throw Error(fmt::format("ASSAY_INJECT={}: unknown fault", one_line(text)));
    faults.insert(*fault);
  }
  return faults;
}

// For a gate of root's. The module stays loaded, so that its libraries may lie where only root can read.
void compute_as_nobody() {
  try {
    (void)Module::load(name_of(device_kind()));
  } catch (const Error&) {  // who needs it will say so
  }
  become_nobody();
}

void run_orders(WorkerLink& link, const RankPlace& place, std::span<const Family> families) {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> comm;
  const auto folder = [](const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
  };
  const Surroundings surroundings{folder("ASSAY_CACHE", "."), folder("ASSAY_RUN", ""),
                                  [&link](const std::string& name, std::string_view text, bool replace) {
                                    link.send(message::FileText{name, std::string(text), replace});
                                  },
                                  [&link](Fault fault) { link.send(message::Injected{std::string(name_of(fault))}); }};
  try {
    refuse_other_precision(device_kind());  // a host may have settings of its own
    device = make_device(device_kind(), place.local_rank);
    comm = make_world(link, place, *device);
    if (comm->size() != place.size || comm->rank() != place.rank)
      throw Error(
          fmt::format("{} says rank {} of {}, the launcher rank {} of {}: module and launcher are of different MPIs",
                      comm->implementation(), comm->rank(), comm->size(), place.rank, place.size));
  } catch (const std::exception& error) {
    link.send(message::Abort{.reason = reason_of(error)});
    wait_to_be_killed();
  }
  const ProgressReport report(link, *comm);
  trace::on_phase([&link](std::string_view name) { link.send(message::Phase{std::string(name)}); });
  Timeline timeline(link, device->kind());
  {
    const trace::Span run(trace::Category::run, "run");
    while (const std::optional<Message> message = link.next()) {
      const auto* order = std::get_if<message::Case>(&*message);
      if (!order) continue;
      Record record;
      try {
        CaseOrder own = order_from(*order, families);
        own.faults.merge(faults_of_this_host());
        record = execute_case(own, *device, *comm, surroundings);
        if (comm->size() > 1) describe_connections(record, *comm);
      } catch (const std::exception& error) {
        link.send(message::Abort{.index = order->index, .reason = reason_of(error)});
        wait_to_be_killed();
      }
      timeline.send_case(record);
      // Other ranks may be waiting for this one in a collective: only the supervisor can free them. A lost device
      // cannot be used again by this process.
      if (record.status == Status::error && (place.size > 1 || device->lost())) {
        link.send(message::Abort{.index = order->index, .record = std::move(record)});
        wait_to_be_killed();
      }
      link.send(message::Finished{order->index, std::move(record)});
    }
  }
  timeline.send_rest();
  trace::on_phase({});
}

}  // namespace

int worker_main(std::span<const Family> families) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const RankPlace place = rank_place();
  bind_to_share(place);
  if (std::getenv("ASSAY_NOBODY")) compute_as_nobody();
  WorkerLink link(place);
  run_orders(link, place, families);
  return 0;
}

}  // namespace assay
