// The host side of a world whose collectives run on GPUs: ranks connect over TCP and agree on small things there.
// Waiting here costs only CPU time: no kernel spins on a GPU that others may be measuring.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay {

class HostGroup {
 public:
  // Passes rank 0's text to all ranks: rank 0 calls it with the text, the others with ""; all get rank 0's.
  using Share = std::function<std::string(const std::string& own)>;

  // A world of `size` ranks; rank 0 listens (on loopback unless the ranks are on several hosts), the others connect.
  // Rank 0's `note` travels with its address. Throws Error if a rank is missing after `timeout_seconds`.
  HostGroup(int rank, int size, bool several_hosts, const Share& share, double timeout_seconds,
            const std::string& note = "");
  ~HostGroup();
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Rank 0's note, on every rank.
  const std::string& note() const { return note_; }

  // `bytes` of every rank to every rank; `receive` has size * bytes. Returns when all ranks have called it. Throws
  // Error naming a rank that disconnected.
  void all_gather(const void* send, void* receive, std::size_t bytes);
  // Returns when all ranks have called it; on one host at nearly the same time everywhere, by its clock. Over several
  // hosts, whose clocks differ, rank 0's messages release the ranks one after another, about 8 us apart:
  // Communicator::line_up() makes up for that.
  void barrier();
  // A group of the ranks with the same colour, ordered by key.
  std::unique_ptr<HostGroup> split(int colour, int key);

 private:
  void listen_and_accept(const Share& share, const std::string& note);
  void connect_to_first(const Share& share);

  int rank_;
  int size_;
  bool several_hosts_;
  double timeout_;
  std::string note_;
  std::vector<int> peers_;  // sockets by rank, at rank 0; rank 0's alone elsewhere
};

}  // namespace assay
