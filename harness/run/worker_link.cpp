// Heartbeats, orders, and the end of the supervisor.
#include "harness/run/worker_link.h"

#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/slurm.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace assay {

namespace {

constexpr std::size_t order_bytes = 1u << 20;

// Without destructors or MPI_Finalize, which would wait for other ranks.
[[noreturn]] void die() {
  std::raise(SIGKILL);
  std::_Exit(4);
}

}  // namespace

RankPlace rank_place() {
  const auto number = [](std::initializer_list<const char*> variables, int otherwise) {
    const auto found = number_of(own_environment, variables);
    return found ? found->value : otherwise;
  };
  RankPlace place;
  place.rank = number({"ASSAY_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
  place.size = number({"ASSAY_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1);
  if (place.rank >= place.size) throw Error(fmt::format("rank {} in a world of {}", place.rank, place.size));
  place.local_rank =
      number({"ASSAY_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, place.rank);
  place.local_size = number({"ASSAY_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 0);
  constexpr const char* of_slurm = "SLURM_STEP_TASKS_PER_NODE";
  if (const auto tasks = own_environment(of_slurm); tasks && place.local_size == 0)
    place.local_size = parse_tasks_per_node(*tasks, of_slurm).front();
  if (place.local_size == 0) place.local_size = place.size;
  place.local_size = std::max(place.local_size, place.local_rank + 1);
  return place;
}

WorkerLink::WorkerLink(const RankPlace& place) {
  const char* address = std::getenv("ASSAY_SUPERVISOR");
  const char* token = std::getenv("ASSAY_TOKEN");
  if (!address || !token)
    throw UsageError("worker: started without a supervisor (ASSAY_SUPERVISOR, ASSAY_TOKEN); use assay run");
  client_ = std::make_unique<ChannelClient>(address, token, order_bytes);
  send(hello_message("worker", place.rank, place.size));
  if (::pipe2(stop_pipe_, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  thread_ = std::thread([this] { listen(); });
}

WorkerLink::~WorkerLink() {
  if (thread_.joinable()) {
    (void)!::write(stop_pipe_[1], "x", 1);
    thread_.join();
  }
  for (const int fd : stop_pipe_)
    if (fd >= 0) ::close(fd);
}

void WorkerLink::send(const Message& message) {
  const std::lock_guard lock(send_mutex_);
  if (!client_->send(message, 30.0)) die();
}

void WorkerLink::set_progress(std::function<void(message::Heartbeat&)> progress) {
  const std::lock_guard lock(progress_mutex_);
  progress_ = std::move(progress);
}

void WorkerLink::send_heartbeat() {
  message::Heartbeat heartbeat;
  {
    const std::lock_guard lock(progress_mutex_);
    if (progress_) progress_(heartbeat);
  }
  send(heartbeat);
}

std::optional<Message> WorkerLink::next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return ended_ || !orders_.empty(); });
  if (orders_.empty()) return std::nullopt;
  Message order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

std::string WorkerLink::shared(const std::string& name, double seconds) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return shared_.contains(name); }))
    throw Error(fmt::format("rank 0 has not shared {} within {:.3g} s", name, seconds));
  return shared_.at(name);
}

void WorkerLink::listen() {
  HeartbeatTimer heartbeat;
  for (;;) {
    pollfd fds[2] = {{client_->fd(), POLLIN, 0}, {stop_pipe_[0], POLLIN, 0}};
    if (::poll(fds, 2, heartbeat.wait_ms()) < 0) continue;
    if (fds[1].revents) return;
    if (heartbeat.due()) send_heartbeat();
    if (!fds[0].revents) continue;
    std::vector<Message> messages;
    try {
      if (!client_->receive(messages)) die();
    } catch (const Error& error) {
      say("assay worker: bad order: {}\n", error.what());
      die();
    }
    for (Message& message : messages) handle(std::move(message));
  }
}

void WorkerLink::handle(Message message) {
  if (const auto* refused = std::get_if<message::Refused>(&message)) {
    say("assay worker: {}\n", refused->reason);
    std::_Exit(4);
  }
  if (std::holds_alternative<message::Where>(message)) return send_heartbeat();
  const std::lock_guard lock(mutex_);
  if (std::holds_alternative<message::End>(message))
    ended_ = true;
  else if (auto* share = std::get_if<message::Share>(&message))
    shared_[share->name] = std::move(share->value);
  else
    orders_.push_back(std::move(message));
  arrived_.notify_all();
}

}  // namespace assay
