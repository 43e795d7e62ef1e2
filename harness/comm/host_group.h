// The hosts' side of a world whose collectives run on GPUs: ranks that meet over TCP and agree on small things there.
// Who waits here waits on its CPU: no kernel spins meanwhile on a GPU that others may be measuring.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay {

class HostGroup {
 public:
  // How a text of rank 0 reaches the others: rank 0 gives it, the others nothing; every rank is given rank 0's.
  using Share = std::function<std::string(const std::string& own)>;

  // A world of `size` ranks; rank 0 listens (on loopback unless the ranks are on several hosts), the others connect.
  // `note` of rank 0 goes with the address. Throws Error when not all have come after `patience_seconds`.
  HostGroup(int rank, int size, bool several_hosts, const Share& share, double patience_seconds,
            const std::string& note = "");
  ~HostGroup();
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Rank 0's, on every rank.
  const std::string& note() const { return note_; }

  // `bytes` of every rank to every rank; `receive` holds size * bytes. Returns when all have called it. Throws Error
  // naming the rank that has gone.
  void all_gather(const void* send, void* receive, std::size_t bytes);
  // Returns when all have called it; on one host at nearly the same moment everywhere, by its clock: messages alone let
  // the ranks go one after another, which would be counted in the first call that they make together.
  void barrier();
  // Ranks with the same colour, ordered by key, as a group of their own.
  std::unique_ptr<HostGroup> split(int colour, int key);

 private:
  void listen_and_accept(const Share& share, const std::string& note);
  void connect_to_first(const Share& share);

  int rank_;
  int size_;
  bool several_hosts_;
  double patience_;
  std::string note_;
  std::vector<int> peers_;  // sockets by rank, at rank 0; rank 0's alone elsewhere
};

}  // namespace assay
