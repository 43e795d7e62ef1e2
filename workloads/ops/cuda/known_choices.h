// Remembers the choices of trials: for this process by descriptor, and for later processes by name, in the cache of
// algorithms.
#pragma once

#include "harness/device/device.h"
#include "workloads/ops/algorithm_cache.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace assay::ops {

// The choices among the algorithms of `libraries`, on devices of this name with this driver. They are kept in the
// folder in ASSAY_CACHE, if it is set.
AlgorithmCache& algorithms_of(const Device& device, const std::string& libraries);

// The choices of trials between implementations, valid for this version of cuDNN, of cuBLASLt and, since our own
// kernels are among the candidates, of Assay.
AlgorithmCache& choices_of(const Device& device);

// The choices for one kind of graph, for which key_of(graph) is defined; thread-safe. Choice::name() identifies the
// choice among the candidates for its graph; if it is empty, only this process remembers the choice. Choice::plan,
// which may be null, is what cuDNN has compiled for it, and is kept with the name. Instances are never destroyed: at
// exit, cuDNN's libraries, loaded later, would be cleaned up before them.
template <typename Graph, typename Choice>
class KnownChoices {
 public:
  // Returns this process's earlier choice, or that of an earlier process by `named(name)`, which returns nothing if the
  // candidate no longer exists; else the result of `search()`, which is nothing if there is no candidate.
  template <typename Named, typename Search>
  std::optional<Choice> find(const Device& device, const Graph& graph, const Named& named, const Search& search) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = choices_.find(graph); known != choices_.end()) return known->second;
    }
    std::optional<Choice> choice;
    const auto accept = [&](const std::string& name) {
      choice = named(name);
      return choice.has_value();
    };
    choices_of(device).find(key_of(graph), accept, [&] {
      choice = search();
      if (!choice) return std::string();
      const std::string name = choice->name();
      if (!name.empty() && choice->plan) choice->plan->keep();
      return name;
    });
    const std::lock_guard lock(mutex_);
    if (choice) choices_.insert_or_assign(graph, *choice);
    return choice;
  }

 private:
  std::mutex mutex_;
  std::map<Graph, Choice> choices_;
};

}  // namespace assay::ops
