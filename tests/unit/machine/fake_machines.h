// Fake machines, as folders of the kernel's files: a bare-metal server, cloud instances, a container.
#pragma once

#include "tests/unit/machine/fake_root.h"

namespace assay {

// 1 socket of 2 Zen 4 cores with SMT (4 CPUs), cpufreq with one CPU on schedutil, RAPL, 2 NUMA nodes, 64 GiB.
void make_bare_metal(FakeRoot& fake);
// EC2 p5.48xlarge cut down to 2 CPUs: 2 H100 with x16 links, one running at x8, NVIDIA's driver loaded.
void make_aws_p5(FakeRoot& fake);
// A Compute Engine VM: the firmware reports the provider, not the type.
void make_gcp(FakeRoot& fake);
// An Azure VM: Hyper-V with Azure's asset tag, 25 % steal since boot.
void make_azure(FakeRoot& fake);
// Docker on cgroup v2 with 4 CPUs shown, 1.5 granted, CPUs 0-1 allowed, 2 GiB of 16, few descriptors, swap in use.
void make_container(FakeRoot& fake);

// `cpus` CPUs, `threads` per core, on one socket, without cpufreq.
void add_cpus(FakeRoot& fake, int cpus, int threads, const std::string& brand, const std::string& flags);
void add_gpu(FakeRoot& fake, const std::string& pci, const std::string& device, int width);

}  // namespace assay
