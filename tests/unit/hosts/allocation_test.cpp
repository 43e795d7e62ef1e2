// Hostfiles, Slurm's variables, and the environment of other launchers, as text.
#include "harness/hosts/allocation.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/hosts/hostfile.h"
#include "harness/hosts/slurm.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace assay {
namespace {

using test::refusal;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Variables = std::map<std::string, std::string>;

Environment of(const Variables& variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
}

// "name:slots" of each host, without slots if none were given.
std::vector<std::string> shown(const std::vector<AllocatedHost>& hosts) {
  std::vector<std::string> words;
  for (const AllocatedHost& host : hosts)
    words.push_back(host.name + (host.slots ? ":" + std::to_string(*host.slots) : ""));
  return words;
}

TEST(Hostfile, OpenMpisSyntaxIsRead) {
  const auto read = [](std::string_view text) { return shown(parse_hostfile(text, "h")); };
  EXPECT_THAT(read("n1\nn2\n"), ElementsAre("n1", "n2"));
  EXPECT_THAT(read("n1 slots=4\nn2 slots=2 max_slots=8"), ElementsAre("n1:4", "n2:2"));
  EXPECT_THAT(read("# all of them\n\n  n1 slots=4 # the first\r\n\tn2\t slots = 2\r\n"), ElementsAre("n1:4", "n2:2"));
  EXPECT_THAT(read("n1 slots= 4\nn2 slots =2"), ElementsAre("n1:4", "n2:2"));
  EXPECT_THAT(read("// n0\nn1 /* slots=9 */ slots=1\n/* n2\nn3 */ n4"), ElementsAre("n1:1", "n4"));
  EXPECT_THAT(read("n1 max-slots=3\nn2 cpu=2\nn3 count=5\nn4 slots-max=7"),
              ElementsAre("n1:3", "n2:2", "n3:5", "n4:7"));
  EXPECT_THAT(read("10.0.0.1 slots=2\nfe80::1 slots=3\nn-1.example.org"),
              ElementsAre("10.0.0.1:2", "fe80::1:3", "n-1.example.org"));
  EXPECT_THAT(read("n1\nn2\nn1\nn1"), ElementsAre("n1:3", "n2")) << "each mention is a slot";
  EXPECT_THAT(read("n1 slots=2\nn1 slots=3"), ElementsAre("n1:5"));
  EXPECT_THAT(read("n1\n^n1\nn2"), ElementsAre("n2"));
  EXPECT_THAT(read("# nothing\n"), ElementsAre());
  const auto users = parse_hostfile("ann@n1 slots=1\nn2 username=bob", "h");
  EXPECT_EQ(users[0].user, "ann");
  EXPECT_EQ(users[0].name, "n1");
  EXPECT_EQ(users[1].user, "bob");
}

TEST(Hostfile, RangesSlotsAddressesAndGroupsAreRead) {
  const auto read = [](std::string_view text) { return shown(parse_hostfile(text, "h")); };
  EXPECT_THAT(read("n1:4\nn2:2 max_slots=8\nann@n3:1"), ElementsAre("n1:4", "n2:2", "n3:1"));
  EXPECT_THAT(read("n[1-3] slots=2\nm[08-10,20]:4"),
              ElementsAre("n1:2", "n2:2", "n3:2", "m08:4", "m09:4", "m10:4", "m20:4"));
  EXPECT_THAT(read("[fe80::1]:3\n[fe80::2]\nfe80::3 slots=2\n[fe80::1]"),
              ElementsAre("fe80::1:4", "fe80::2", "fe80::3:2"));
  EXPECT_THAT(
      read("# cluster\n[gpu]\nn1\nn2 # a comment\n\n[cpu-nodes]\nm1\n[gpu:vars]\nuser=root\n[all:children]\ngpu"),
      ElementsAre("n1", "n2", "m1"));
  EXPECT_THAT(read("n[1-4]\n^n[2-3]\nn1"), ElementsAre("n1:2", "n4"));
  EXPECT_EQ(parse_hostfile("n[1-64]", "h").size(), 64u);
  for (const char* text : {"n1:", "n1:0", "n1:x", "n1:4 slots=2", "[fe80::1", "n[3-1]", "n[1-", "n[1-2]]",
                           "[fe80::1]:", "n[a-b]", "n[1-99999999]", "a:b:c"})
    EXPECT_THAT(refusal([&] { parse_hostfile(text, "h"); }), testing::StartsWith("h:1: ")) << text;
}

TEST(Hostfile, EveryBadLineIsNamed) {
  const std::string all = refusal([] {
    parse_hostfile(
        "n1 slots=0\nn2 slot=3\n\nn3 slots=many # x\nslots=4\n+n1\nn5 slots=4 max_slots=2\nn6 slots\nn7 n8\n-n9\n"
        "n10 slots=99999999999\n@n11\n",
        "hosts.txt");
  });
  EXPECT_THAT(all, HasSubstr("hosts.txt:1: slots=0: must be a number from 1 to 65536"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:2: \"slot=3\" is not known here; did you mean \"slots\"?"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:4: slots=many: must be"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:5: \"slots=4\" stands where a host is expected"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:6: \"+n1\": relative hosts"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:7: slots=4 is more than max_slots=2"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:8: \"slots\" lacks its value"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:9: \"n8\" is not known here"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:10: \"-n9\" is no host's name"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:11: slots=99999999999: must be"));
  EXPECT_THAT(all, HasSubstr("hosts.txt:12: \"\" is no user's name"));
}

// Whatever the bytes, they are rejected with an error that names the file, or the hosts survive a round trip.
TEST(Hostfile, AnyBytesAreReadOrRejected) {
  std::vector<std::string> texts = {std::string("\0n1", 3), "/*", "n1 =", "="};
  for (int c = 1; c < 256; ++c) texts.push_back(std::string("n1 slots=2\n") + static_cast<char>(c) + "n2\n");
  int read = 0, rejected = 0;
  for (const std::string& text : texts) {
    std::vector<AllocatedHost> hosts;
    bool accepted = false;
    const std::string why = refusal([&] {
      hosts = parse_hostfile(text, "h");
      accepted = true;
    });
    if (!accepted) {
      EXPECT_THAT(why, testing::StartsWith("h:")) << text;
      ++rejected;
      continue;
    }
    std::string again;
    for (const AllocatedHost& host : hosts) {
      if (!host.user.empty()) again += host.user + "@";
      again += host.name + (host.slots ? " slots=" + std::to_string(*host.slots) : "") + "\n";
    }
    EXPECT_EQ(shown(parse_hostfile(again, "h")), shown(hosts)) << text;
    ++read;
  }
  EXPECT_GT(read, 60);
  EXPECT_GT(rejected, 60);
}

TEST(Hostfile, UnusableFilesAreRefused) {
  EXPECT_THAT(refusal([] { read_hostfile("/nowhere/hosts", "--hostfile"); }),
              HasSubstr("--hostfile: cannot read /nowhere/hosts: No such file"));
  EXPECT_THAT(refusal([] { read_hostfile("/tmp", "--hostfile"); }), HasSubstr("a folder, not a file"));
  EXPECT_THAT(refusal([] { read_hostfile("/dev/null", "--hostfile"); }), HasSubstr("/dev/null: it is a device"));
}

TEST(Slurm, NodeLists) {
  const auto read = [](std::string_view text) { return parse_node_list(text, "SLURM_JOB_NODELIST"); };
  EXPECT_THAT(read("n1"), ElementsAre("n1"));
  EXPECT_THAT(read("n[1-3,07],m2"), ElementsAre("n1", "n2", "n3", "n07", "m2"));
  EXPECT_THAT(read("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(read("a[1-2]b[3,5]c,x"), ElementsAre("a1b3c", "a1b5c", "a2b3c", "a2b5c", "x"));
  EXPECT_THAT(read("gpu-a,gpu-b.example"), ElementsAre("gpu-a", "gpu-b.example"));
  EXPECT_THAT(read("n[0]"), ElementsAre("n0"));
  EXPECT_EQ(read("n[0-65535]").size(), 65536u);
  for (const char* bad : {"", "n1,", ",n1", "n[", "n[]", "n[1-]", "n[3-1]", "n[1,a]", "n]", "n[1]]", "n[0-65536]",
                          "n[0-999]m[0-999]", "n[99999999999999999999]", "n[1-3"})
    EXPECT_THAT(refusal([&] { read(bad); }), HasSubstr(std::string("SLURM_JOB_NODELIST=") + bad)) << bad;
}

TEST(Slurm, NodeListsAreWrittenAsShortAsTheyCanBeRead) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(node_list({"n23", "n17", "n17"}), "n[17,23]");
  EXPECT_EQ(node_list({"n1"}), "n1");
  EXPECT_EQ(node_list({"n8", "n9", "n10", "n11"}), "n[8-11]");
  EXPECT_EQ(node_list({"n08", "n09", "n10", "m", "m2", "n1"}), "m,m2,n[1,08-10]");
  EXPECT_EQ(node_list({"n9", "n010", "n99", "n0100"}), "n[9,99,010,0100]");
  EXPECT_EQ(node_list({"fe80::1", "fe80::2", "10.0.0.1", "10.0.0.2"}), "10.0.0.[1-2],fe80::1,fe80::2");
  EXPECT_EQ(node_list({}), "");
  for (const Names& names : {Names{"n0", "n00", "n1", "n01", "n000"}, Names{"7", "8", "x"}, Names{"a-1.b", "a-2.b"},
                             Names{"n999999999", "n1000000000", "n99999999999999999999"}}) {
    Names read = parse_node_list(node_list(names), ""), sorted = names;
    std::ranges::sort(read), std::ranges::sort(sorted);
    EXPECT_EQ(read, sorted) << node_list(names);
  }
}

TEST(Slurm, TasksPerNode) {
  const auto read = [](std::string_view text) { return parse_tasks_per_node(text, "SLURM_TASKS_PER_NODE"); };
  EXPECT_THAT(read("4"), ElementsAre(4));
  EXPECT_THAT(read("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(read("1,2(x2),0"), ElementsAre(1, 2, 2, 0));
  for (const char* bad : {"", "x", "2(x", "2(x)", "2(x0)", "2(3)", "2,", "2;1", "-1", "2(x3)1", "2(x99999)",
                          "99999999999", "2(x99999999999)"})
    EXPECT_THAT(refusal([&] { read(bad); }), HasSubstr(std::string("SLURM_TASKS_PER_NODE=") + bad)) << bad;
}

TEST(Slurm, JobsAndSteps) {
  const auto found = [](const Variables& variables) { return slurm_allocation(of(variables)); };
  EXPECT_FALSE(found({}));
  const Variables batch = {{"SLURM_JOB_ID", "17"},    {"SLURM_JOB_NODELIST", "n[1-2]"},
                           {"SLURMD_NODENAME", "n1"}, {"SLURM_TASKS_PER_NODE", "8(x2)"},
                           {"SLURM_PROCID", "0"},     {"SLURM_JOB_NUM_NODES", "2"}};
  auto one = found(batch);
  EXPECT_EQ(one->origin, "Slurm job 17");
  EXPECT_THAT(shown(one->hosts), ElementsAre("n1", "n2")) << "nobody asked for tasks: the counts are CPUs";
  EXPECT_TRUE(one->hosts[0].here);
  EXPECT_FALSE(one->hosts[1].here);
  EXPECT_EQ(one->part, Part::supervisor);
  Variables asked = batch;
  asked["SLURM_NTASKS"] = "16";
  EXPECT_THAT(shown(found(asked)->hosts), ElementsAre("n1:8", "n2:8"));

  Variables task = asked;
  task.insert({{"SLURM_STEP_ID", "0"},
               {"SLURM_STEP_NODELIST", "n2,n1"},
               {"SLURM_STEP_NUM_TASKS", "3"},
               {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
               {"SLURM_LOCALID", "0"}});
  one = found(task);
  EXPECT_THAT(shown(one->hosts), ElementsAre("n2:2", "n1:1")) << "the step's hosts, in its order";
  EXPECT_EQ(one->part, Part::supervisor);
  task["SLURM_PROCID"] = "2";
  EXPECT_EQ(found(task)->part, Part::bystander);

  task["SLURM_STEP_TASKS_PER_NODE"] = "3";
  EXPECT_THAT(refusal([&] { found(task); }), HasSubstr("SLURM_STEP_TASKS_PER_NODE=3 counts 1 hosts"));
}

TEST(Allocation, ThisHostAlone) {
  const Allocation alone = find_allocation({}, of({}));
  EXPECT_EQ(alone.source, LaunchSource::local);
  EXPECT_TRUE(alone.only_here());
  EXPECT_EQ(alone.hosts.front().name, this_host());
  EXPECT_FALSE(alone.hosts.front().slots);
  // A job of only this node is local too, and so is mpirun with one process.
  const Variables job = {
      {"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n1"}, {"SLURM_NTASKS", "4"}, {"SLURM_TASKS_PER_NODE", "4"}};
  Variables inside = job;
  inside["SLURMD_NODENAME"] = "n1";
  EXPECT_EQ(find_allocation({}, of(inside)).source, LaunchSource::local);
  EXPECT_EQ(find_allocation({}, of(job)).source, LaunchSource::slurm) << "its only node is another one";
  EXPECT_EQ(find_allocation({}, of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}})).source,
            LaunchSource::local);
}

TEST(Allocation, TheTasksOfOneNodeHaveOneSupervisor) {
  const Variables task = {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n1"},      {"SLURMD_NODENAME", "n1"},
                          {"SLURM_PROCID", "3"}, {"SLURM_STEP_NODELIST", "n1"},     {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_NTASKS", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "4"}};
  EXPECT_EQ(find_allocation({}, of(task)).part, Part::bystander);
}

class HostfileOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/assay-hosts-" + std::to_string(::getpid());
    std::ofstream(path_) << "far slots=4\nlocalhost slots=2\n";
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(HostfileOnDisk, IsNamedByTheFlagOrOpenMpisVariables) {
  const Allocation flag = find_allocation(path_, of({{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n[1-2]"}}));
  EXPECT_EQ(flag.source, LaunchSource::hostfile);
  EXPECT_THAT(shown(flag.hosts), ElementsAre(this_host() + ":2", "far:4"));
  EXPECT_TRUE(flag.hosts[0].here);
  EXPECT_FALSE(flag.only_here());
  for (const char* variable : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"}) {
    const Allocation named = find_allocation({}, of({{variable, path_}}));
    EXPECT_EQ(shown(named.hosts), shown(flag.hosts));
    EXPECT_THAT(named.origin, HasSubstr(variable));
    EXPECT_THAT(refusal([&] { find_allocation({}, of({{variable, "/nowhere/h"}})); }), HasSubstr(variable));
  }
}

TEST(Allocation, OnlyHostsThatPassed) {
  const test::TemporaryFolder folder;
  const auto passed = [&](const char* text) { std::ofstream(folder.path() / passed_file) << text; };
  Allocation job;
  job.source = LaunchSource::slurm;
  job.origin = "Slurm job 17";
  for (const char* name : {"n1", "n2", "n3"}) job.hosts.push_back({.name = name, .slots = 4, .user = {}});
  Allocation here;
  here.hosts = {{this_host(), {}, "", true}};
  const Environment none = of({}), inside = of({{"SLURM_JOB_ID", "17"}});
  EXPECT_THAT(refusal([&] { only_passed(job, folder.path(), none); }), HasSubstr("no finished acceptance there"));
  passed("");
  EXPECT_THAT(refusal([&] { only_passed(job, folder.path(), none); }), HasSubstr("no host passed"));
  passed("n9\n");
  EXPECT_THAT(refusal([&] { only_passed(job, folder.path(), none); }),
              HasSubstr("none of the hosts of Slurm job 17 passed there"));
  passed("n3\nn1\nn9\n");
  EXPECT_THAT(shown(only_passed(job, folder.path(), none).hosts), ElementsAre("n1:4", "n3:4"));
  EXPECT_THAT(shown(only_passed(here, folder.path(), none).hosts), ElementsAre("n3", "n1", "n9"));
  // A job of this host alone is not left.
  EXPECT_THAT(refusal([&] { only_passed(here, folder.path(), inside); }), HasSubstr("passed there"));
}

TEST_F(HostfileOnDisk, ExcludesOtherLaunchers) {
  EXPECT_THAT(refusal([&] {
                find_allocation(path_, of({{"ASSAY_SUPERVISOR", "a:1"}}));
              }),
              HasSubstr("exclude each other"));
  EXPECT_THAT(refusal([&] {
                find_allocation(path_, of({{"OMPI_COMM_WORLD_SIZE", "4"}}));
              }),
              HasSubstr("give the hostfile to mpirun"));
}

TEST(Allocation, RanksOfAnyLauncher) {
  Variables variables = {
      {"ASSAY_SUPERVISOR", "head:2900"}, {"ASSAY_TOKEN", "secret"}, {"ASSAY_RANK", "0"}, {"ASSAY_SIZE", "3"}};
  Allocation first = find_allocation({}, of(variables));
  EXPECT_EQ(first.source, LaunchSource::environment);
  EXPECT_EQ(first.part, Part::supervisor);
  EXPECT_EQ(first.supervisor, "head:2900");
  EXPECT_EQ(first.token, "secret");
  EXPECT_THAT(shown(first.hosts), ElementsAre(this_host(), "", ""));
  variables["ASSAY_RANK"] = "2";
  EXPECT_EQ(find_allocation({}, of(variables)).part, Part::agent);
  EXPECT_EQ(find_allocation({}, of(variables)).rank, 2);

  Variables indexed = {
      {"ASSAY_SUPERVISOR", "job-0.svc:2900"}, {"ASSAY_TOKEN", "x"}, {"JOB_COMPLETION_INDEX", "1"}, {"ASSAY_SIZE", "2"}};
  EXPECT_EQ(find_allocation({}, of(indexed)).rank, 1);

  const Variables mpi = {{"ASSAY_SUPERVISOR", "h:1"},         {"ASSAY_TOKEN", "x"},
                         {"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const Allocation joined = find_allocation({}, of(mpi));
  EXPECT_EQ(joined.local_rank, 1);
  EXPECT_THAT(shown(joined.hosts), ElementsAre(":2", ":2")) << "local ranks are slots of a host";

  const Variables srun = {{"ASSAY_SUPERVISOR", "h:1"}, {"ASSAY_TOKEN", "x"},
                          {"SLURM_PROCID", "1"},       {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_LOCALID", "1"},      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_THAT(shown(find_allocation({}, of(srun)).hosts), ElementsAre(":2", ":2"));
  EXPECT_EQ(find_allocation({}, of(srun)).part, Part::agent);

  const Variables unmet = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(find_allocation({}, of(unmet)).part, Part::unmet);
}

TEST(Allocation, InvalidVariablesAreRefused) {
  const Variables good = {
      {"ASSAY_SUPERVISOR", "head:2900"}, {"ASSAY_TOKEN", "secret"}, {"ASSAY_RANK", "1"}, {"ASSAY_SIZE", "3"}};
  const auto with = [&](const char* name, const char* value) {
    Variables changed = good;
    changed[name] = value;
    return refusal([&] { find_allocation({}, of(changed)); });
  };
  for (const char* bad : {"head", "head:", ":1", "head:0", "head:65536", "head:12x"})
    EXPECT_THAT(with("ASSAY_SUPERVISOR", bad), HasSubstr("must be HOST:PORT")) << bad;
  EXPECT_THAT(with("ASSAY_TOKEN", ""), HasSubstr("ASSAY_TOKEN is not"));
  EXPECT_THAT(with("ASSAY_RANK", ""), HasSubstr("set ASSAY_RANK"));
  EXPECT_THAT(with("ASSAY_SIZE", ""), HasSubstr("set ASSAY_SIZE"));
  EXPECT_THAT(with("ASSAY_RANK", "3"), HasSubstr("ASSAY_RANK=3 does not go with ASSAY_SIZE=3"));
  EXPECT_THAT(with("ASSAY_RANK", "-1"), HasSubstr("ASSAY_RANK=-1: not a number"));
  EXPECT_THAT(with("ASSAY_RANK", "one"), HasSubstr("ASSAY_RANK=one: not a number"));
  EXPECT_THAT(with("ASSAY_SIZE", "99999999999"), HasSubstr("ASSAY_SIZE=99999999999: not a number"));
}

TEST(Allocation, NamesOfThisHostAreRecognised) {
  EXPECT_TRUE(is_this_host("localhost", of({})));
  EXPECT_TRUE(is_this_host(this_host(), of({})));
  EXPECT_TRUE(is_this_host("n1", of({{"SLURMD_NODENAME", "n1"}})));
  EXPECT_FALSE(is_this_host("n2", of({{"SLURMD_NODENAME", "n1"}})));
  EXPECT_FALSE(is_this_host("far.example.org", of({})));
}

}  // namespace
}  // namespace assay
