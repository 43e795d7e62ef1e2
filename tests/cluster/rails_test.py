"""assay accept over namespaces with several links a host, rank i on link i: slow links, hosts and ways are told apart.
usage: rails_test.py HOSTS LINKS"""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import accept_test  # noqa: E402
import namespaces  # noqa: E402
from cluster_case import main  # noqa: E402

COUNT, LINKS = int(sys.argv.pop(1)), int(sys.argv.pop(1))
# Ranks that share few CPUs wait for them as long as for a fast link, some more and some less: all links are slow. The more
# ranks, the slower, and with as few messages as tell: 128 ranks must end on two cores.
MANY = COUNT > 8
HEALTHY, SLOW, SIZE, BURST = ("10mbit", "500kbit", "40KiB", "16k") if MANY else ("50mbit", "2mbit", "128KiB", "64k")


class Rails(accept_test.OverHosts):
    COUNT, LINKS = COUNT, LINKS
    PATIENCE = 3500 if MANY else 500
    test_five_faults_at_once_are_each_found_by_their_check = None

    def setUp(self):
        super().setUp()
        for host in self.hosts.names:
            self.slow_host(host, HEALTHY)
        cases = [{"family": "collective", "op": "rails", "bytes": SIZE, "dtype": "f32"}]
        if not MANY:
            cases += [{"family": "collective", "op": "all_reduce", "among": "rail", "bytes": SIZE, "dtype": "f32"}]
        # Each of many rounds takes as long as its slowest port.
        self.plan("pairs", *cases, timeout="40min", protocol={"max_seconds": f"{1 if MANY else COUNT / 8:g}s",
                                                              "warmup_seconds": "10ms", "min_samples": 2 if MANY else 3})
        self.write("tiny.json", {"schema": 1, "pairs": ["pairs"], "pair_share": "10%", "ranks_per_host": {"cpu": LINKS}})

    def environment(self, **more):
        return super().environment(**more, **({"ASSAY_HEARTBEAT_LIMIT": "120s"} if MANY else {}))

    def slow_host(self, host, rate, links=None):
        self.hosts.slow_host(host, rate, links, BURST)

    def check(self, failing, unsure=()):
        """Hosts fail with evidence of that pattern, or are unsure; all others pass."""
        self.accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out), code=1)
        table = self.table()
        for host in self.hosts.names:
            found = table[host]["pairs"]
            state = "fail" if host in failing else "inconclusive" if host in unsure else "pass"
            self.assertEqual(found["state"], state, (host, found))
            if host in failing:
                self.assertRegex(" ".join(found["evidence"]), failing[host])
        self.nothing_left()

    def test_one_slow_link_is_a_port(self):
        if MANY:
            self.skipTest("the other test has one, too")
        self.slow_host("h3", SLOW, links=[1])
        others = COUNT - 1
        self.check({"h3": rf"batched: rail 1: {others} of {others} links to others are slow: "})
        # All hosts at once are slow on that rail, too, by the same port.
        self.assertRegex(" ".join(self.table()["h3"]["pairs"]["evidence"]),
                         r"among=rail: rail 1, all hosts at once: .* of the usual rail \(10 % at least\); its slow links are those of h3")
        groups = {group["rail"]: group for group in self.document["rail_groups"]}
        self.assertEqual([(rail, groups[rail]["slow"], groups[rail]["explained_by"]) for rail in sorted(groups)],
                         [(rail, rail == 1, ["h3"] if rail == 1 else []) for rail in range(LINKS)])
        self.assertEqual(sorted(groups[1]["hosts"]), self.hosts.names)
        ports = {(port["host"], port["rail"]): port for port in self.document["rails"]}
        self.assertEqual({place for place, port in ports.items() if port["state"] != "pass"}, {("h3", 1)})
        self.assertEqual(len(ports), COUNT * LINKS)
        self.assertLess(ports["h3", 1]["send"], ports["h3", 1]["floor"])
        self.assertEqual(self.document["switches"], [])

    def test_a_port_a_host_and_a_way_at_once(self):
        if COUNT < 8:
            self.skipTest("each of the three needs others to compare with")
        self.slow_host("h3", SLOW, links=[1])
        self.slow_host("h5", SLOW)
        self.hosts.slow("h7", "h8", SLOW, others=HEALTHY, burst=BURST)
        self.hosts.slow("h8", "h7", SLOW, others=HEALTHY, burst=BURST)
        self.check({"h3": r"batched: rail 1: \d+ of", "h5": r"batched: \d+ of \d+ links"}, ("h7", "h8"))


if __name__ == "__main__":
    main(namespaces.missing())
