"""assay accept over namespaces with several links a host, rank i on link i: slow links, hosts and ways are told apart.
usage: rails_test.py HOSTS LINKS"""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import accept_test  # noqa: E402
import namespaces  # noqa: E402
from cluster_case import main  # noqa: E402

COUNT, LINKS = int(sys.argv.pop(1)), int(sys.argv.pop(1))


class Rails(accept_test.OverHosts):
    COUNT, LINKS = COUNT, LINKS
    test_five_faults_at_once_are_each_found_by_their_check = None

    def setUp(self):
        super().setUp()
        # Ranks that share few CPUs wait for them as long as for a fast link, some more and some less: all links are slow.
        for host in self.hosts.names:
            self.hosts.slow_host(host, "50mbit")
        seconds = COUNT / 8
        self.plan("pairs", {"family": "collective", "op": "rails", "bytes": "128KiB", "dtype": "f32"},
                  protocol={"max_seconds": f"{seconds:g}s", "warmup_seconds": "10ms", "min_samples": 3})
        self.write("tiny.json", {"schema": 1, "pairs": ["pairs"], "pair_share": "10%", "ranks_per_host": {"cpu": LINKS}})

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
        self.hosts.slow_host("h3", "2mbit", links=[1])
        others = COUNT - 1
        self.check({"h3": rf"batched: rail 1: {others} of {others} links to others are slow: "})

    def test_a_port_a_host_and_a_way_at_once(self):
        if COUNT < 8:
            self.skipTest("each of the three needs others to compare with")
        self.hosts.slow_host("h3", "2mbit", links=[1])
        self.hosts.slow_host("h5", "2mbit")
        self.hosts.slow("h7", "h8", "2mbit")
        self.hosts.slow("h8", "h7", "2mbit")
        self.check({"h3": r"batched: rail 1: \d+ of", "h5": r"batched: \d+ of \d+ links"}, ("h7", "h8"))


if __name__ == "__main__":
    main(namespaces.missing())
