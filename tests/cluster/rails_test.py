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
        seconds = COUNT / 8
        self.plan("pairs", {"family": "collective", "op": "rails", "bytes": "256KiB", "dtype": "f32"},
                  protocol={"max_seconds": f"{seconds:g}s", "warmup_seconds": "10ms", "min_samples": 3})
        self.write("tiny.json", {"schema": 1, "pairs": ["pairs"], "pair_share": "10%", "ranks_per_host": {"cpu": LINKS}})

    def check(self, code, **culprits):
        """The hosts that fail by a culprit, or are unsure for None; all others pass."""
        self.accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out), code=code)
        table = self.table()
        for host in self.hosts.names:
            found = table[host]["pairs"]
            state = "pass" if host not in culprits else "fail" if culprits[host] else "inconclusive"
            self.assertEqual(found["state"], state, (host, found))
            if state == "fail":
                self.assertEqual(found["culprit"], culprits[host], found)
        self.nothing_left()

    def test_one_slow_link_is_a_port(self):
        self.hosts.slow_host("h3", "4mbit", links=[1])
        self.check(1, h3="port rail 1")

    def test_a_port_a_host_and_a_way_at_once(self):
        if COUNT < 8:
            self.skipTest("each of the three needs others to compare with")
        self.hosts.slow_host("h3", "4mbit", links=[1])
        self.hosts.slow_host("h5", "4mbit")
        self.hosts.slow("h7", "h8", "4mbit")
        self.hosts.slow("h8", "h7", "4mbit")
        self.check(1, h3="port rail 1", h5="host h5", h7=None, h8=None)


if __name__ == "__main__":
    main(namespaces.missing())
