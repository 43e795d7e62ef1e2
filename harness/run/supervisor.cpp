// Launch, order, watch, record, relaunch.
#include "harness/run/supervisor.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/text.h"
#include "harness/record/json_reader.h"
#include "harness/record/run_dir.h"
#include "harness/run/messages.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

namespace assay {

namespace {

constexpr std::size_t log_bytes = 4096;
constexpr std::size_t max_timeline_entries = 200000;
constexpr auto answer_patience = std::chrono::milliseconds(1500);
constexpr auto blame_patience = std::chrono::milliseconds(1000);

// How often the kernel has killed for want of memory, on this machine and in this cgroup.
std::int64_t oom_kill_count() {
  std::int64_t total = 0;
  for (const char* path : {"/proc/vmstat", "/sys/fs/cgroup/memory.events"}) {
    std::ifstream file(path);
    std::string name;
    for (std::int64_t value = 0; file >> name >> value;)
      if (name == "oom_kill") total += value;
  }
  return total;
}

// Where workers of several hosts reach this one.
ChannelServer::Listen listen_for(const Agents* agents) {
  ChannelServer::Listen where;
  if (!agents) return where;
  where.hosts = agents->own_addresses();
  for (const AllocatedHost& host : agents->allocation().hosts)
    where.every_interface = where.every_interface || !host.here;
  return where;
}

bool speaks_of_memory(const std::string& text) {
  for (const char* word : {"bad_alloc", "Cannot allocate memory", "out of memory", "Out of memory"})
    if (text.find(word) != text.npos) return true;
  return false;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, LauncherKind several_ranks, const std::vector<MeasuredPeak>& peaks,
                       Progress& progress, Sink sink)
    : options_(std::move(options)),
      several_ranks_(several_ranks),
      peaks_(peaks),
      progress_(progress),
      sink_(std::move(sink)),
      channel_(listen_for(options_.agents)) {
  adopt_orphans();
  std::signal(SIGPIPE, SIG_IGN);
}

Supervisor::~Supervisor() { group_.reset(); }

bool Supervisor::start_workers(const Job& first) {
  const int ranks = first.order.world.ranks;
  channel_.expect(ranks);
  ranks_.assign(static_cast<std::size_t>(ranks), {});
  group_worked_ = false;
  failure_.reset();
  shared_.clear();
  oom_kills_ = oom_kill_count();
  LaunchRequest request;
  request.kind = ranks == 1 ? LauncherKind::local : several_ranks_;
  request.ranks = ranks;
  const auto& flags = first.order.flags;
  request.oversubscribed = std::find(flags.begin(), flags.end(), "oversubscribed") != flags.end();
  request.environment = {{"ASSAY_SUPERVISOR", channel_.address()},
                         {"ASSAY_TOKEN", channel_.token()},
                         {"ASSAY_DEVICE", std::string(name_of(options_.device))},
                         {"ASSAY_CACHE", options_.cache_dir.string()},
                         {"ASSAY_RUN", options_.run_dir.string()},
                         {"ASSAY_MPI_THREADS", first.order.family->workload ? "serialized" : "single"}};
  if (options_.trace) request.environment["ASSAY_TRACE"] = "1";
  if (options_.device != DeviceKind::cpu) {
    // CUDA's own order is by speed; by place it is that of the driver's tools, and the CPUs near each GPU are known.
    if (!std::getenv("CUDA_DEVICE_ORDER")) request.environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    request.environment["ASSAY_START_LIMIT"] = fmt::format("{}", options_.launch_limit_seconds);
  }
  if (options_.share_gpu && ranks > 1) request.environment["ASSAY_SHARE_GPU"] = "1";
  Seating seating = seat_ranks(options_.slots, options_.hosts, {ranks, options_.device, options_.share_gpu, ""},
                               options_.agents, [this] {
                                 watch_signals();
                                 progress_.tick();
                                 if (options_.go_on) options_.go_on();
                                 return interrupted_;
                               });
  placement_ = std::move(seating.placement);
  request.seats = placement_.seats;
  without_seats_ = !seating.missing.empty();
  if (without_seats_) failure_ = Failure{seating.missing, std::nullopt, false, -1};
  if (without_seats_ || interrupted_) return false;
  for (const auto& [name, value] : environment_of(*first.order.family, first.order.params))
    request.environment[name] = value;
  try {
    group_ = start_group(request, options_.agents);
  } catch (const Error& error) {
    failure_ = Failure{error.what(), std::nullopt, false, -1};
  }
  return group_ != nullptr;
}

void Supervisor::end_group(bool orderly) {
  if (!group_) return;
  if (orderly) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) channel_.send(static_cast<int>(rank), {{"type", "end"}});
    // Their last words, the span of the whole run among them, are read before they go.
    const auto patience = Clock::now() + std::chrono::seconds(10);
    const auto connected = [](const RankState& rank) { return rank.connected; };
    while (Clock::now() < patience && std::any_of(ranks_.begin(), ranks_.end(), connected)) pump(100);
    failure_.reset();
    group_->wait_end(10);
  }
  group_->kill_all();
  group_.reset();
  channel_.expect(0);
}

void Supervisor::watch_signals() {
  for (const int signal : signals_.take()) {
    if (interrupted_ && signal == SIGINT) {
      if (group_) group_->kill_all();
      progress_.note("assay: interrupted again; ended at once");
      ::_exit(static_cast<int>(ExitCode::no_data));
    }
    if (!interrupted_)
      progress_.note(fmt::format("assay: interrupted by SIG{}; ending the workers", sigabbrev_np(signal)));
    interrupted_ = true;
  }
}

void Supervisor::await_signal(double seconds) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (watch_signals(); !interrupted_ && Clock::now() < until; watch_signals()) {
    pollfd fd{signals_.fd(), POLLIN, 0};
    ::poll(&fd, 1, 50);
  }
}

void Supervisor::take_message(int rank, const Json& message) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const JsonReader reader(message, "");
  const std::string type = reader.text("type");
  if (type == "span") {
    state.phase = reader.text("name");
    state.phase_since = Clock::now();
    group_worked_ = true;
    if (rank == 0) progress_.phase(state.phase);
  } else if (type == "heartbeat") {
    state.answered = true;
    state.begun = reader.unsigned_integer("begun", 0);
    state.ended = reader.unsigned_integer("ended", 0);
    state.call = reader.text("call", "");
  } else if (type == "fault") {
    if (const auto fault = fault_from(reader.text("name"))) state.injected.insert(*fault);
  } else if (type == "record" || type == "abort") {
    if (reader.has("case") && reader.integer("case", -1) != case_index_) return;
    std::optional<Record> part;
    if (reader.has("record")) part = Record::from_json(reader.object("record"));
    if (part && (part->ranks.size() != 1 || part->ranks.front().rank != rank)) throw Error("record of another rank");
    group_worked_ = group_worked_ || part;
    if (type == "record" && part)
      state.part = std::move(part);
    else if (!failure_)
      failure_ = Failure{part ? part->reason : reader.text("reason", "it gave up"), std::move(part), false, rank,
                         Clock::now()};
  } else if (type == "share") {
    shared_.take(rank, message, channel_, static_cast<int>(ranks_.size()));
  } else if (type == "file" && reader.has("text")) {
    if (options_.keep_file) options_.keep_file(reader.text("name"), reader.text("text"), reader.flag("anew", false));
  } else if (type == "file") {
    if (timeline_entries_ >= max_timeline_entries) return;
    std::vector<trace::Entry> entries = entries_from(message);
    // As this host's clock would have told it, so that ranks lie side by side.
    for (trace::Entry& entry : entries) entry.start_ns -= clock_ahead_ns(rank);
    timeline_entries_ += entries.size();
    trace::RankTimeline& timeline = timelines_[rank];
    timeline.rank = rank;
    timeline.host = state.host;
    std::move(entries.begin(), entries.end(), std::back_inserter(timeline.entries));
    if (timeline_entries_ >= max_timeline_entries)
      progress_.note(fmt::format("assay: trace: {} spans are kept, later ones are left out", timeline_entries_));
  }
}

void Supervisor::take(const ChannelServer::Event& event) {
  using Kind = ChannelServer::Event::Kind;
  if (event.kind == Kind::refused) {
    if (!failure_) failure_ = Failure{JsonReader(event.message, "").text("reason"), std::nullopt, false, -1};
    return;
  }
  RankState& state = ranks_[static_cast<std::size_t>(event.rank)];
  state.heard = Clock::now();
  if (event.kind == Kind::hello) {
    const JsonReader hello(event.message, "");
    state.connected = true;
    state.host = hello.text("host");
    const std::int64_t pid = hello.small("pid", 0);
    const auto index = static_cast<std::size_t>(event.rank);
    const std::size_t host =
        index < placement_.seats.size() ? static_cast<std::size_t>(placement_.seats[index].host) : 0;
    if (host >= options_.slots.size() || options_.slots[host].here) state.pid = pid;
    group_->add_worker(event.rank, static_cast<pid_t>(pid));
    shared_.greet(event.rank, channel_);
  } else if (event.kind == Kind::closed) {
    state.connected = false;
    blame_ended(event.rank);
  } else {
    try {
      take_message(event.rank, event.message);
    } catch (const RunDirError&) {
      throw;  // no later file or record would fare better
    } catch (const std::exception& error) {
      progress_.note(fmt::format("assay: channel: rank {}: {}", event.rank, error.what()));
    }
  }
}

void Supervisor::pump(int timeout_ms) {
  std::vector<pollfd> others = {{signals_.fd(), POLLIN, 0}};
  group_->add_fds(others);
  const std::vector<ChannelServer::Event> events = channel_.wait(timeout_ms, others);
  for (const ChannelServer::Event& event : events) take(event);
  for (const std::string& line : channel_.take_log()) progress_.note("assay: " + line);
  group_->read();
  blame_lost_host();
  if (others[0].revents) watch_signals();
  // What a worker sent before it ended comes first.
  if (events.empty() && group_->reap()) blame_ended(group_->first_ended().value_or(-1));
  progress_.tick();
  if (options_.go_on) options_.go_on();
}

// Who gave up with a word stays, so another worker that ended is why it gave up: it missed that one.
void Supervisor::blame_ended(int rank) {
  if (!failure_ || (failure_->told && rank >= 0 && rank != failure_->rank))
    failure_ = Failure{"its worker ended", std::nullopt, true, rank};
}

// Ranks that miss another may say so before the end of that one is known.
bool Supervisor::failed_for_good() const {
  return failure_ && (!failure_->told || ranks_.size() == 1 || Clock::now() - *failure_->told >= blame_patience);
}

void Supervisor::blame_lost_host() {
  const auto lost = group_->lost();
  // The workers of a lost host end with it, and others miss them, which may be known first.
  if (!lost || (failure_ && !failure_->unexplained && !failure_->told)) return;
  failure_ = Failure{lost->reason, std::nullopt, false, lost->rank};
}

std::int64_t Supervisor::clock_ahead_ns(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return options_.agents && index < placement_.seats.size()
             ? options_.agents->clock_ahead_ns(placement_.seats[index].host)
             : 0;
}

void Supervisor::watch_clocks(Clock::time_point deadline, double limit) {
  const Clock::time_point now = Clock::now();
  if (failure_) return;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankState& state = ranks_[rank];
    const double silent = std::chrono::duration<double>(now - state.heard).count();
    if (!state.connected || silent <= options_.heartbeat_limit_seconds) continue;
    std::string reason = fmt::format("timeout: rank {} on {} gave no sign of life for {:.3g} s", rank, state.host,
                                     options_.heartbeat_limit_seconds);
    if (state.pid > 0 && process_state(state.pid) == 'T') reason += ": its process is stopped";
    failure_ = Failure{std::move(reason), std::nullopt, false, static_cast<int>(rank)};
  }
  if (now < deadline) return;
  if (case_index_ >= 0) return find_the_late(now, limit);
  std::string missing;
  int first = -1;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (!ranks_[rank].connected) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
      if (first < 0) first = static_cast<int>(rank);
    }
  failure_ =
      Failure{fmt::format("timeout: the workers did not start within {:.3g} s (missing: rank {})", limit, missing),
              std::nullopt, false, first};
}

void Supervisor::find_the_late(Clock::time_point now, double limit) {
  if (!asked_) {
    asked_ = now;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].answered = false;
      channel_.send(static_cast<int>(rank), {{"type", "where"}});
    }
  }
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.answered; });
  if (!all && now - *asked_ < answer_patience) return;
  std::vector<RankSight> sights;
  for (const RankState& rank : ranks_)
    sights.push_back({rank.host, rank.part.has_value(), rank.answered, rank.phase,
                      std::chrono::duration<double>(now - rank.phase_since).count(),
                      rank.pid > 0 ? process_state(rank.pid) : '?', rank.begun, rank.ended, rank.call});
  const Lateness late = find_late(sights);
  failure_ =
      Failure{fmt::format("timeout: not done after {:.3g} s: {}", limit, late.words), std::nullopt, false, late.rank};
}

Supervisor::Wait Supervisor::wait_hellos() {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(options_.launch_limit_seconds));
  for (;;) {
    if (interrupted_) return Wait::interrupted;
    if (failed_for_good()) return Wait::failed;
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.connected; }))
      return Wait::done;
    pump(500);
    watch_clocks(deadline, options_.launch_limit_seconds);
  }
}

Supervisor::Wait Supervisor::run_case(const Job& job, int index) {
  case_index_ = index;
  asked_.reset();
  std::set<std::string> hosts;
  for (RankState& rank : ranks_) {
    hosts.insert(rank.host);
    rank.phase.clear();
    rank.injected.clear();
    rank.part.reset();
    rank.heard = Clock::now();
  }
  CaseOrder order = job.order;
  order.world.nodes = static_cast<int>(hosts.size());
  order.peaks = peaks_;
  const Json message = to_message(order, index);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (!channel_.send(static_cast<int>(rank), message) && !failure_)
      failure_ = Failure{"its worker ended", std::nullopt, true, static_cast<int>(rank)};
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(job.timeout_seconds));
  for (;;) {
    // A record that is complete is kept, whatever else happened.
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.part.has_value(); })) {
      std::vector<Record> parts;
      for (RankState& rank : ranks_) parts.push_back(std::move(*rank.part));
      Record whole = merge_parts(std::move(parts));
      whole.started = earlier(whole.started, clock_ahead_ns(0));
      deliver(job, std::move(whole));
      return failure_ ? Wait::failed : Wait::done;
    }
    if (interrupted_) return Wait::interrupted;
    if (failed_for_good()) return Wait::failed;
    pump(500);
    watch_clocks(deadline, job.timeout_seconds);
  }
}

// A batch system that ends a job signals everybody at once: a worker may fall before the word is read here.
bool Supervisor::fell_by_order() {
  if (!failure_->unexplained || !group_) return interrupted_;
  group_->wait_end(2.0, failure_->rank);
  const auto status = group_->wait_status(failure_->rank);
  if (status && signals_.holds(ending_signal(*status, group_->through_launcher()))) await_signal(0.5);
  return interrupted_;
}

// The record of a case whose worker is gone; ends the group on the way, since its end tells the signal.
Record Supervisor::broken_record(const Job& job) {
  std::string word, log;
  if (group_) {
    if (failure_->unexplained) group_->wait_end(5.0, failure_->rank);  // mpirun needs a moment to end what is left
    blame_lost_host();
    if (const auto status = group_->wait_status(failure_->rank); failure_->unexplained && status)
      word = describe_status(*status, group_->through_launcher());
    group_->kill_all();
    log = group_->tail(log_bytes, failure_->rank);
  }
  const Failure failure = *failure_;

  CaseOrder order = job.order;
  order.world.nodes = placement_.hosts;  // also where not all of them were heard of: the case stays the same
  Record record = failure.part ? *failure.part : blank_record(order, options_.device);
  if (failure.part) {
    record.started = earlier(record.started, clock_ahead_ns(failure.rank));
  } else {
    record.started = begun_at_;
    record.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  }
  record.world_nodes = order.world.nodes;
  record.ranks.clear();
  for (const RankSeat& seat : placement_.seats)
    record.ranks.push_back({seat.rank, options_.hosts[static_cast<std::size_t>(seat.host)].name, "", std::nullopt, "",
                            "", cpu_list_text(seat.cpus), seat.numa_node});
  record.status = Status::error;
  record.metrics.clear();
  record.samples = {};

  std::string reason = word.empty() ? failure.reason : word;
  const auto culprit = static_cast<std::size_t>(std::max(failure.rank, 0));
  if (failure.rank >= 0 && ranks_.size() > 1 && reason.find("rank ") == reason.npos)
    reason = fmt::format("rank {}: {}", failure.rank, reason);
  if (const std::string phase = culprit < ranks_.size() ? ranks_[culprit].phase : "";
      !failure.part && !phase.empty() && reason.find("in " + phase) == reason.npos)
    reason += " in " + phase;
  if (failure.unexplained) {
    if (speaks_of_memory(log) || (word.find("SIGKILL") != word.npos && oom_kill_count() > oom_kills_))
      reason = "out of memory: " + reason;
    if (!log.empty()) reason += fmt::format("; stderr: {}", one_line(last_lines(log, 1), 300));
  }
  record.reason = reason;
  record.log = log;
  if (!log.empty()) progress_.note(last_lines(log, 20));
  return record;
}

void Supervisor::deliver(const Job& job, Record record) {
  std::set<Fault> injected;
  for (const RankState& rank : ranks_) injected.insert(rank.injected.begin(), rank.injected.end());
  flag_faults(record, job.order.faults, injected);
  progress_.finish(record);
  sink_(std::move(record));
}

bool Supervisor::run(std::vector<Job> jobs) {
  if (interrupted_) return false;
  int fruitless = 0;  // launches in a row that did not come as far as a case's first phase
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    progress_.begin(job.order.key, job.order.world.ranks, job.estimated_seconds);
    begun_ = Clock::now();
    begun_at_ = utc_now();
    case_index_ = -1;
    Wait wait = Wait::done;
    if (!group_) wait = start_workers(job) ? wait_hellos() : Wait::failed;
    if (wait == Wait::done) wait = run_case(job, static_cast<int>(i));
    if (wait == Wait::done && !interrupted_) continue;
    // What keeps workers from starting must not keep this process from being ended.
    if (wait == Wait::failed) await_signal(options_.agents && !without_seats_ ? 1.5 : 0);
    if (wait == Wait::failed && !interrupted_) {
      const bool delivered =
          std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.part.has_value(); });
      const bool worked = group_worked_;
      std::optional<Record> record;
      if (!delivered && !fell_by_order()) record = broken_record(job);
      end_group(false);
      fruitless = worked ? 0 : fruitless + 1;
      if (record) {
        deliver(job, *record);
        // What keeps workers from starting keeps all of them: the rest shares the reason.
        for (std::size_t j = i + 1; (fruitless >= 2 || without_seats_) && j < jobs.size(); ++j, ++i) {
          Record same = blank_record(jobs[j].order, options_.device);
          same.ranks = record->ranks;
          same.world_nodes = record->world_nodes;
          same.status = Status::error;
          same.reason = record->reason;
          progress_.begin(same.key, same.world_ranks, jobs[j].estimated_seconds);
          deliver(jobs[j], std::move(same));
        }
      }
    }
    if (interrupted_) {
      end_group(false);
      return false;
    }
  }
  end_group(true);
  return !interrupted_;
}

std::vector<trace::RankTimeline> Supervisor::take_timelines() {
  std::vector<trace::RankTimeline> all;
  for (auto& [rank, timeline] : timelines_) all.push_back(std::move(timeline));
  timelines_.clear();
  timeline_entries_ = 0;
  return all;
}

}  // namespace assay
